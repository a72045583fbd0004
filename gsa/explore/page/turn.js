// The first tab: a digit is turned, and what was computed of this state is shown.

const RED = 1e-3; // a change of the logits that is called broken

function startTurn(data, names) {
  const middle = data.shifts.indexOf(0);
  const state = { digit: 0, mirror: 0, down: middle, right: middle, angle: 0, pixel: [5, 5] };
  data.names = [`${names[0]} (${data.group})`, `${names[1]} (Z2)`];
  data.side = data.picture.shape.at(-1) - 2 * data.shifts.at(-1);
  const where = () => [state.digit, state.mirror, state.down, state.right, state.angle];
  const plane = () => [state.digit, state.mirror, state.angle]; // of what is kept once for all shifts
  const parts = [startLifted(data), startLooking(data, state, () => show()), startCurve(data), startBars(data)];
  names.forEach((name, i) => (byId(["name", "twin"][i]).textContent = name));
  byId("group").textContent = data.group;
  byId("count").textContent = data.poses.length;
  ["own", "plain"].forEach((which, i) => {
    byId(`error-${which}`).firstElementChild.textContent = data.names[i];
    document.querySelector(`.key.${which}`).textContent = i ? `${data.names[i]}, dashed` : data.names[i];
  });

  function set(changes) {
    Object.assign(state, changes);
    show();
  }
  const pressDigit = choices(byId("digits"), data.digits, (digit) => set({ digit }));
  const steps = data.angles.length;
  const pressQuarter = choices(byId("quarters"), ["0°", "90°", "180°", "270°"], (i) => set({ angle: (i * steps) / 4 }));
  const angle = byId("angle");
  angle.max = steps - 1;
  angle.addEventListener("input", () => set({ angle: Number(angle.value) }));
  for (const axis of ["down", "right"]) {
    byId(axis).max = data.shifts.length - 1;
    byId(axis).addEventListener("input", (event) => set({ [axis]: Number(event.target.value) }));
  }
  byId("mirror").addEventListener("change", (event) => set({ mirror: Number(event.target.checked) }));

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
    pressQuarter((4 * state.angle) / steps);
    const errors = [0, 1].map((net) => at(data.errors, net, ...where())[0]);
    ["error-own", "error-plain"].forEach((id, i) => {
      byId(id).lastElementChild.textContent = small(errors[i]);
      byId(id).classList.toggle("bad", errors[i] > RED);
    });
    byId("told").textContent = told(data, state, errors);
    const picture = windowed(data, at(data.picture, ...plane()), state);
    parts.forEach((part) => part({ where: where(), plane: plane(), state, picture, side: data.side, degrees }));
  }
  show();
}

// Of a square with a margin, what is in the picture when it is shifted.
function windowed(data, values, state) {
  const wide = Math.sqrt(values.length);
  const margin = data.shifts.at(-1);
  const [top, left] = [margin - data.shifts[state.down], margin - data.shifts[state.right]];
  const rows = Array.from({ length: wide - 2 * margin }, (_, i) => (top + i) * wide + left);
  return rows.flatMap((start) => values.slice(start, start + rows.length));
}

const isShifted = (data, state) => Boolean(data.shifts[state.down] || data.shifts[state.right]);

function told(data, state, [own, plain]) {
  const measured = `The logits change by ${small(own)} (${data.group}) and ${small(plain)} (Z2).`;
  const still = !state.mirror && !isShifted(data, state);
  const exact = data.angles[state.angle] in data.feature_errors[state.digit];
  if (still && state.angle === 0) return `${measured} This is the digit as it was drawn.`;
  if (still && exact) return `${measured} A turn by ${data.angles[state.angle]}° is in ${data.group}: exact to rounding.`;
  const reasons = [];
  if (!exact) reasons.push("the angle lies between the pixels, where pictures are sampled");
  if (state.mirror) reasons.push(`mirrors are not in ${data.group}`);
  if (isShifted(data, state)) reasons.push("shifts meet the border and the pool, which takes every other pixel");
  return `${measured} Not exact: ${reasons.join("; ")}.`;
}

function startLifted(data) {
  const row = byId("lifted");
  const input = tile(row, "picture");
  const tiles = data.poses.map((pose) => tile(row, `pose ${pose}`));
  const limits = data.channels.map((_, channel) => {
    const maps = data.digits.flatMap((_, digit) => at(data.lifted, digit, 0, 0, channel));
    return maps.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  });
  let last;
  const show = (now) => {
    last = now;
    const channel = Number(byId("channel").value);
    paint(input.canvas, now.picture, now.side, grey, `the digit ${data.digits[now.state.digit]} at ${now.degrees}`);
    tiles.forEach(({ canvas }, pose) => {
      const map = windowed(data, at(data.lifted, ...now.plane, channel, pose), now.state);
      const label = `lifted feature, channel ${data.channels[channel]}, pose ${data.poses[pose]}`;
      paint(canvas, map, Math.sqrt(map.length), (value) => signed(value / limits[channel]), label);
    });
    const error = data.feature_errors[now.state.digit][data.angles[now.state.angle]];
    const still = !now.state.mirror && !isShifted(data, now.state);
    byId("moved").textContent =
      still && error !== undefined
        ? `The maps at 0°, turned by ${now.degrees} and moved to their new poses, differ from these by ${small(error)} (all channels).`
        : "At a quarter turn without mirror and shift, the maps are compared with those at 0°, turned and moved on.";
  };
  options(byId("channel"), data.channels.map(String), () => show(last));
  return show;
}

function startCurve(data) {
  const around = [...data.angles.keys(), 0];
  return ({ state, degrees }) => {
    const truth = data.classes.indexOf(data.digits[state.digit]);
    const place = [state.digit, state.mirror, state.down, state.right];
    const curves = [0, 1].map((net) => around.map((step) => at(data.probabilities, net, ...place, step)[truth]));
    const now = curves.map((values, net) => `${percent(values[state.angle])} with ${data.names[net]}`);
    chart(byId("curve"), {
      lines: [["own", curves[0]], ["plain", curves[1]]],
      xs: [...data.angles, 360],
      ticks: [0, 90, 180, 270, 360].map((angle) => [angle, `${angle}°`]),
      marks: [[0, "0"], [0.5, "0.5"], [1, "1"]],
      here: data.angles[state.angle],
      label: `Probability of the digit ${data.digits[state.digit]} at ${degrees}: ${now.join(", ")}`,
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
  return ({ where }) =>
    lists.forEach((rows, net) =>
      at(data.probabilities, net, ...where).forEach((value, i) => {
        rows[i].bar.style.width = `${100 * value}%`;
        rows[i].number.textContent = percent(value);
      }),
    );
}
