// The first tab: a digit is turned, and what was computed of this state is shown.

const RED = 1e-3; // a change of the logits that is called broken

function startTurn({ turn: data, names, offered, asks, choices: kinds }) {
  const middle = data.shifts.indexOf(0);
  const state = { digit: 0, mirror: 0, down: middle, right: middle, angle: 0 };
  const isMade = Boolean(asks?.group);
  data.names = isMade ? names : names.map((name, i) => `${name} (${i ? "Z2" : data.group})`);
  const source = data.live ? fromServer(data, asks) : fromTable(data);
  const centre = Math.ceil(data.side / 2) - 1;
  state.pixel = [centre, centre];
  if (data.live) Object.assign(state, carried(data));
  const parts = [startLifted(data), startLooking(data, state, () => show()), startCurve(data), startBars(data)];
  names.forEach((name, i) => (byId(["name", "twin"][i]).textContent = name));
  byId("beside").hidden = names.length === 1;
  byId("alike").hidden = data.live && names.join() !== "digits_gsa,digits_gsa_z2";
  byId("trained").hidden = isMade;
  byId("made").hidden = !isMade;
  byId("kept").hidden = !data.keeps;
  byId("promise").textContent = promise(data);
  byId("group").textContent = data.group;
  byId("count").textContent = data.poses.length === 1 ? "one pose" : `${data.poses.length} poses`;
  ["own", "plain"].forEach((which, i) => {
    const [card, key] = [byId(`error-${which}`), document.querySelector(`.key.${which}`)];
    card.hidden = key.hidden = i >= names.length;
    if (card.hidden) return;
    card.firstElementChild.textContent = data.names[i];
    key.textContent = i ? `${data.names[i]}, dashed` : data.names[i];
  });

  function set(changes) {
    Object.assign(state, changes);
    show();
  }
  const pressDigit = choices(byId("digits"), data.digits, (digit) => set({ digit, pixels: undefined }));
  const turns = pressed(data);
  const pressTurn = choices(byId("turns"), turns.map((index) => `${data.angles[index]}°`), (i) => set({ angle: turns[i] }));
  const angle = byId("angle");
  angle.max = data.angles.length - 1;
  angle.addEventListener("input", () => set({ angle: Number(angle.value) }));
  for (const axis of ["down", "right"]) {
    byId(axis).max = data.shifts.length - 1;
    byId(axis).addEventListener("input", (event) => set({ [axis]: Number(event.target.value) }));
  }
  byId("mirror").checked = Boolean(state.mirror);
  byId("mirror").addEventListener("change", (event) => set({ mirror: Number(event.target.checked) }));
  if (data.live) {
    let taken = 0;
    startOwn(asks, (pixels) => set(pixels ? { digit: -1, picture: ++taken, pixels } : { digit: 0, pixels }));
    startAnother(asks, offered, kinds, data, state);
  }

  function show() {
    const degrees = `${data.angles[state.angle]}°`;
    angle.value = state.angle;
    angle.setAttribute("aria-valuetext", degrees);
    byId("angle-told").textContent = degrees;
    for (const axis of ["down", "right"]) {
      const pixels = String(data.shifts[state[axis]]).replace("-", "−");
      byId(axis).value = state[axis];
      byId(axis).setAttribute("aria-valuetext", `${pixels} pixels`);
      byId(`${axis}-told`).textContent = `${pixels} px`;
    }
    pressDigit(state.digit);
    pressTurn(turns.indexOf(state.angle));
    source(state, draw);
  }

  // All that was computed of a state; of its curves alone, where only they have changed.
  function draw(now, curvesOnly = false) {
    now.degrees = `${data.angles[now.state.angle]}°`;
    if (curvesOnly) return parts[2](now);
    ["error-own", "error-plain"].slice(0, names.length).forEach((id, i) => {
      byId(id).lastElementChild.textContent = small(now.errors[i]);
      byId(id).classList.toggle("bad", now.errors[i] > RED);
    });
    byId("told").textContent = told(data, now);
    parts.forEach((part) => part(now));
    document.body.dataset.drawn = now.degrees;
  }
  show();
}

// Indices of the angles that have a button: the group's own, at most eight; without any, quarter turns.
function pressed(data) {
  const own = data.turns.length > 1 ? data.turns : [0, 90, 180, 270];
  const every = Math.ceil(own.length / 8);
  return own.filter((_, i) => i % every === 0).map((degrees) => data.angles.indexOf(degrees)).filter((index) => index >= 0);
}

// Indices of the angles that are on the curves.
const curveAngles = (data) => [...data.angles.keys()].filter((angle) => angle % data.every === 0);

// Whether the poses take over from each other when the picture is turned.
const isTurned = (data) => data.keeps && data.turns.length > 1;

function promise(data) {
  if (isTurned(data)) return ": it turns with the picture, and at an angle of the group its maps have moved on to other poses.";
  if (data.keeps) return `. ${data.group} has no turns, so nothing makes it turn with the picture.`;
  return `. With an encoding that keeps ${data.group} its maps would move with the picture; the one of this network does not.`;
}

const isShifted = (data, state) => Boolean(data.shifts[state.down] || data.shifts[state.right]);

function told(data, { state, subject, errors, moved }) {
  const angle = data.angles[state.angle];
  const changes = errors.map((error, i) => `${small(error)} (${i ? "Z2" : data.group})`);
  const measured = `The logits change by ${changes.join(" and ")}.`;
  const shifted = isShifted(data, state);
  if (!shifted && !state.mirror && angle === 0) return `${measured} This is ${data.live ? subject : "the digit"} as it was drawn.`;
  const move = state.mirror ? `A mirror and a turn by ${angle}° are` : `A turn by ${angle}° is`;
  if (moved !== undefined && errors[0] <= RED) return `${measured} ${move} in ${data.group}: exact to rounding.`;
  if (moved !== undefined) return `${measured} ${move} in ${data.group}, but this network does not keep it.`;
  const reasons = [];
  if (angle % 90) reasons.push("the angle lies between the pixels, where pictures are sampled");
  if (!data.turns.includes(angle)) reasons.push(`a turn by ${angle}° is not in ${data.group}`);
  if (state.mirror && !data.mirrors) reasons.push(`mirrors are not in ${data.group}`);
  if (shifted) reasons.push("shifts meet the border and the pool, which takes every other pixel");
  if (!reasons.length) reasons.push(`this is not in ${data.group}`);
  const why = reasons.join("; ");
  if (errors[0] > RED) return `${measured} Not exact: ${why}.`;
  return `${measured} ${why[0].toUpperCase()}${why.slice(1)}, though this network does not change under it.`;
}

function startLifted(data) {
  const row = byId("lifted");
  const input = tile(row, "picture");
  const tiles = data.poses.map((pose) => tile(row, `pose ${pose}`));
  row.style.setProperty("--tiles", 1 + tiles.length);
  let last;
  const show = (now) => {
    last = now;
    const channel = Number(byId("channel").value);
    paint(input.canvas, now.picture, data.side, grey, `${now.subject} at ${now.degrees}`);
    tiles.forEach(({ canvas }, pose) => {
      const map = now.lifted(channel, pose);
      const label = `lifted feature, channel ${data.channels[channel]}, pose ${data.poses[pose]}`;
      paint(canvas, map, Math.sqrt(map.length), (value) => signed(value / now.limits[channel]), label);
    });
    byId("moved").textContent =
      now.moved !== undefined
        ? `The maps at 0°, turned by ${now.degrees} and moved to their new poses, differ from these by ${small(now.moved)} (all channels).`
        : `Where an exact element of ${data.group} has moved the picture, without a shift, the maps are compared with those at 0°, moved on alike.`;
  };
  options(byId("channel"), data.channels.map(String), () => show(last));
  return show;
}

function startCurve(data) {
  const xs = [...curveAngles(data).map((angle) => data.angles[angle]), 360];
  return ({ state, degrees, truth, curves, subject, probabilities }) => {
    const now = probabilities.map((values, net) => `${percent(values[truth])} with ${data.names[net]}`);
    const known = curves[0].filter((value) => value !== undefined).length;
    byId("of-class").textContent = data.classes[truth] + (state.digit < 0 ? `, what ${subject} is taken for as it was drawn,` : "");
    byId("filling").textContent = known < curves[0].length ? `computing: ${known} of ${curves[0].length} angles` : "";
    chart(byId("curve"), {
      lines: curves.map((values, net) => [["own", "plain"][net], [...values, values[0]]]),
      xs,
      ticks: [0, 90, 180, 270, 360].map((angle) => [angle, `${angle}°`]),
      marks: [[0, "0"], [0.5, "0.5"], [1, "1"]],
      here: data.angles[state.angle],
      label: `Probability of class ${data.classes[truth]} at ${degrees}: ${now.join(", ")}`,
    });
  };
}

function startBars(data) {
  const lists = data.names.map((title, net) => {
    const list = element("div", { className: "bars" }, element("b", { textContent: title }));
    const rows = data.classes.map((name) => {
      const bar = element("i");
      const number = element("span");
      bar.style.background = net ? "var(--plain)" : "var(--own)";
      list.append(element("span", { textContent: name }), bar, number);
      return { bar, number };
    });
    byId("bars").append(list);
    return rows;
  });
  return ({ probabilities }) =>
    lists.forEach((rows, net) =>
      probabilities[net].forEach((value, i) => {
        rows[i].bar.style.width = `${100 * value}%`;
        rows[i].number.textContent = percent(value);
      }),
    );
}
