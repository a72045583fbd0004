// Where states come from on a page with a server: it is asked, one question at a time, and its answers are kept.

const REST = 300; // ms without a question, after which the other angles are asked for
let partsAsked = 0; // whose answers are not here yet

async function askServer(address, content) {
  const answer = await fetch(address, content === undefined ? {} : { method: "POST", body: content }).catch(() => {
    throw new Error("The server does not answer: is gsa explore still running?");
  });
  if (!answer.ok) throw new Error(await answer.text());
  return answer;
}

// What is wrong, in words; nothing when all is well.
function trouble(error) {
  byId("trouble").textContent = error ? error.message : "";
  if (error) byId("trouble").scrollIntoView({ block: "nearest" });
}

// The data of a tab, when it is first looked at; `asks` names the network.
async function askPart(name, asks) {
  const panel = byId(`panel-${name}`);
  panel.setAttribute("aria-busy", "true");
  partsAsked++;
  try {
    return await unpackAll(await (await askServer(`/part/${name}?${new URLSearchParams(asks)}`)).json());
  } catch (error) {
    trouble(error);
    throw error;
  } finally {
    partsAsked--;
    panel.removeAttribute("aria-busy");
  }
}

// As `fromTable`. Answers to older questions are told until a newer one has been told, and while nothing but the angle
// has changed; `tell` is called again, with true, when more is known of the curves.
function fromServer(data, asks) {
  data.side = data.picture.shape.at(-1);
  const byContent = data.layers.first.by === "content"; // then it looks from the pixel that is chosen
  let known = new Map(); // angles → answers, of one picture, mirrored or not, at one place, from one pixel
  let chances = new Map(); // angles → probabilities, whatever the pixel
  let [kept, keptPicture] = ["", ""];
  let last, next, resting;
  let [asked, told, busy] = [0, 0, false];
  const onCurve = curveAngles(data);
  const pixels = (state) => state.pixels ?? Uint8Array.from(at(data.picture, state.digit));
  const pictureOf = (state) => [state.digit, state.picture, state.mirror, state.down, state.right].join();
  const pixelOf = (state) => (byContent ? { row: state.pixel[0], column: state.pixel[1] } : {});
  const keyOf = (state) => [pictureOf(state), ...Object.values(pixelOf(state))].join();

  async function ask(state) {
    const { mirror, down, right, angle } = state;
    const query = new URLSearchParams({ ...asks, mirror, down, right, angle, ...pixelOf(state) });
    const answer = await unpackAll(await (await askServer(`/state?${query}`, pixels(state))).json());
    if (keyOf(state) === kept) known.set(angle, answer);
    if (pictureOf(state) === keptPicture) chances.set(angle, answer.probabilities);
  }

  function say(question, curvesOnly = false) {
    const { state, tell, number } = question;
    const answer = known.get(state.angle);
    if (!answer || keyOf(state) !== kept || number < told) return;
    told = number;
    tell(shown(state, answer), curvesOnly);
  }

  function shown(state, answer) {
    const digit = data.digits[state.digit];
    const likeliest = answer.start[0].indexOf(Math.max(...answer.start[0]));
    const truth = digit === undefined ? likeliest : data.classes.indexOf(digit);
    const chance = (net) => onCurve.map((angle) => chances.get(angle)?.[net][truth]);
    return {
      state,
      subject: digit === undefined ? "your picture" : `the digit ${digit}`,
      truth,
      limits: answer.limits,
      picture: at(answer.picture),
      lifted: (channel, pose) => at(answer.lifted, channel, pose),
      attention: (which, head, pose) => at(answer.attention[which], head, pose),
      errors: answer.errors,
      probabilities: answer.probabilities,
      curves: data.names.map((_, net) => chance(net)),
      moved: answer.moved ?? undefined,
    };
  }

  async function work() {
    if (busy) return;
    busy = true;
    while (next) {
      const question = next;
      next = undefined;
      await ask(question.state).then(() => say(question), trouble);
    }
    busy = false;
    clearTimeout(resting);
    resting = setTimeout(fill, REST);
  }

  // The other angles, for the curves, while nobody asks.
  async function fill() {
    const angle = onCurve.find((angle) => !chances.has(angle));
    if (busy || next || angle === undefined) return;
    if (partsAsked) return (resting = setTimeout(fill, REST)); // a tab that somebody looks at comes first
    busy = true;
    const done = await ask({ ...last.state, angle }).then(() => true, trouble);
    busy = false;
    if (next) return work();
    if (!done) return;
    say(last, true);
    resting = setTimeout(fill);
  }

  return (state, tell) => {
    trouble();
    last = { state: { ...state }, tell, number: ++asked };
    clearTimeout(resting);
    if (keyOf(state) !== kept) [known, kept] = [new Map(), keyOf(state)];
    if (pictureOf(state) !== keptPicture) [chances, keptPicture] = [new Map(), pictureOf(state)];
    if (known.has(state.angle)) {
      next = undefined;
      say(last);
      resting = setTimeout(fill, REST);
      return;
    }
    next = last;
    work();
  };
}
