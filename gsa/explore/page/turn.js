// The first tab: a digit is turned, and what was computed of this state is shown.

const RED = 1e-3; // a change of the logits that is called broken

function startTurn(data, name) {
  const state = { digit: 0, mirror: 0, shift: data.shifts.indexOf(0), angle: 0, pixel: [5, 5] };
  const side = data.picture.shape.at(-1);
  const where = () => [state.digit, state.mirror, state.shift, state.angle];
  const parts = [startLifted(data), startLooking(data, state, () => show()), startCurve(data), startBars(data)];
  byId("name").textContent = name;
  byId("group").textContent = document.querySelector(".key.own").textContent = data.group;
  byId("count").textContent = data.poses.length;
  byId("error-own").firstElementChild.textContent = `${name} (${data.group})`;
  byId("error-plain").firstElementChild.textContent = "without the group (Z2)";

  function set(changes) {
    Object.assign(state, changes);
    show();
  }
  const pressDigit = choices(byId("digits"), data.digits, (digit) => set({ digit }));
  const steps = data.angles.length;
  const pressQuarter = choices(byId("quarters"), ["0°", "90°", "180°", "270°"], (i) => set({ angle: (i * steps) / 4 }));
  const angle = byId("angle");
  const shift = byId("shift");
  angle.max = steps - 1;
  shift.max = data.shifts.length - 1;
  angle.addEventListener("input", () => set({ angle: Number(angle.value) }));
  shift.addEventListener("input", () => set({ shift: Number(shift.value) }));
  byId("mirror").addEventListener("change", (event) => set({ mirror: Number(event.target.checked) }));

  function show() {
    const degrees = `${data.angles[state.angle]}°`;
    const pixels = data.shifts[state.shift];
    angle.value = state.angle;
    shift.value = state.shift;
    angle.setAttribute("aria-valuetext", degrees);
    shift.setAttribute("aria-valuetext", `${pixels} pixels`);
    byId("angle-told").textContent = degrees;
    byId("shift-told").textContent = `${pixels} px`;
    pressDigit(state.digit);
    pressQuarter((4 * state.angle) / steps);
    const errors = data.errors.map((all) => where().reduce((inner, i) => inner[i], all));
    ["error-own", "error-plain"].forEach((id, i) => {
      byId(id).lastElementChild.textContent = small(errors[i]);
      byId(id).classList.toggle("bad", errors[i] > RED);
    });
    byId("told").textContent = told(data, state, errors);
    const picture = at(data.picture, ...where());
    parts.forEach((part) => part({ where: where(), state, picture, side, degrees }));
  }
  show();
}

function told(data, state, [own, plain]) {
  const measured = `The logits change by ${small(own)} (${data.group}) and ${small(plain)} (without it).`;
  const still = !state.mirror && data.shifts[state.shift] === 0;
  const exact = data.angles[state.angle] in data.feature_errors[state.digit];
  if (still && state.angle === 0) return `${measured} This is the digit as it was drawn.`;
  if (still && exact) return `${measured} A turn by ${data.angles[state.angle]}° is in ${data.group}: exact to rounding.`;
  const reasons = [];
  if (!exact) reasons.push("the angle lies between the pixels, where pictures are sampled");
  if (state.mirror) reasons.push(`mirrors are not in ${data.group}`);
  if (data.shifts[state.shift]) reasons.push("shifts meet the border and the pool, which takes every other pixel");
  return `${measured} Not exact: ${reasons.join("; ")}.`;
}

function startLifted(data) {
  const row = byId("lifted");
  const input = tile(row, "picture");
  const tiles = data.poses.map((pose) => tile(row, `pose ${pose}`));
  const limits = data.channels.map((_, channel) => {
    let most = 0;
    for (let i = 0; i < data.digits.length; i++) {
      const maps = at(data.lifted, i, 0, data.shifts.indexOf(0), 0);
      const size = maps.length / data.channels.length;
      for (const value of maps.slice(channel * size, (channel + 1) * size)) most = Math.max(most, Math.abs(value));
    }
    return most;
  });
  let last;
  const show = (now) => {
    last = now;
    const channel = Number(byId("channel").value);
    paint(input.canvas, now.picture, now.side, grey, `the digit ${data.digits[now.state.digit]} at ${now.degrees}`);
    tiles.forEach(({ canvas }, pose) => {
      const map = at(data.lifted, ...now.where, channel, pose);
      const label = `lifted feature, channel ${data.channels[channel]}, pose ${data.poses[pose]}`;
      paint(canvas, map, data.lifted.shape.at(-1), (value) => signed(value / limits[channel]), label);
    });
    const error = data.feature_errors[now.state.digit][data.angles[now.state.angle]];
    const still = !now.state.mirror && data.shifts[now.state.shift] === 0;
    byId("moved").textContent =
      still && error !== undefined
        ? `The maps at 0°, turned by ${now.degrees} and moved to their new poses, differ from these by ${small(error)} (all channels).`
        : "At a quarter turn without mirror and shift, the maps are compared with those at 0°, turned and moved on.";
  };
  options(byId("channel"), data.channels.map(String), () => show(last));
  return show;
}

function startLooking(data, state, again) {
  const kinds = ["position", "content"];
  const view = tile(byId("looking"), "");
  const zoom = 24;
  const tiles = data.poses.map((pose) => tile(byId("encoding"), `encoding, ${pose}`, true));
  const layer = () => data.layers[kinds[Number(byId("layer").value)]];
  view.canvas.tabIndex = 0;

  const heads = () => {
    options(byId("head"), Array.from({ length: layer().heads }, (_, i) => String(i)));
    byId("head").value = "1"; // the first one looks at the pixel itself
  };
  options(byId("layer"), ["first, by position", "last, by content"], () => (heads(), again()));
  options(byId("pose"), data.poses, again);
  heads();
  byId("head").addEventListener("change", again);
  const move = (row, column) => {
    const last = data.picture.shape.at(-1) - 2;
    state.pixel = [row, column].map((place) => Math.min(Math.max(place, 1), last));
    again();
  };
  view.canvas.addEventListener("click", (event) => {
    const side = data.picture.shape.at(-1) / view.canvas.clientWidth;
    move(Math.floor(event.offsetY * side), Math.floor(event.offsetX * side));
  });
  view.canvas.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    move(state.pixel[0] + step[0], state.pixel[1] + step[1]);
  });

  return ({ where, picture, side }) => {
    const { attention, encoding, cell } = layer();
    const [head, pose] = [Number(byId("head").value), Number(byId("pose").value)];
    const free = attention.shape.length === 4; // by position: the same in every state, for every pixel
    const weights = free ? at(attention, head, pose) : at(attention, ...where, head, pose);
    const reach = attention.shape.at(-1);
    const [row, column] = free ? state.pixel.map((place) => place + 0.5) : [side / 2, side / 2];
    paint(view.canvas, picture, side, grey, "");
    drawLooks(view.canvas, { weights, reach, cell, row, column, side, zoom, picture });
    const best = weights.indexOf(Math.max(...weights));
    const sum = weights.reduce((a, b) => a + b, 0);
    const goal = placed(Math.floor(best / reach) - (reach - 1) / 2, (best % reach) - (reach - 1) / 2);
    const label = `head ${head} in pose ${data.poses[pose]} looks most at ${goal}, with ${percent(Math.max(...weights) / sum)}`;
    view.canvas.setAttribute("aria-label", `${label}; ${free ? "arrow keys move the pixel" : "the pixel in the middle"}`);
    view.canvas.dataset.weights = weights.map((weight) => weight.toFixed(3)).join(" ");
    view.line.textContent = free ? `pixel in row ${state.pixel[0]}, column ${state.pixel[1]}` : "the one pixel of the last map";
    tiles.forEach(({ canvas }, h) => {
      const scores = at(encoding, head, h);
      const least = Math.min(...data.poses.flatMap((_, other) => at(encoding, head, other)));
      paint(canvas, scores, reach, (value) => warm(1 - value / (least || -1)), `encoding of head ${head} as pose ${data.poses[h]} sees it`);
      canvas.style.borderColor = h === pose ? "var(--own)" : "";
      canvas.style.borderWidth = h === pose ? "3px" : "";
    });
    byId("looks").textContent =
      `${label[0].toUpperCase()}${label.slice(1)}. ` +
      (free
        ? "Heads of this layer look by position alone: the same on every picture, turned with the pose. Click on the picture, or use arrow keys on it, to choose the pixel."
        : `A key is ${cell}×${cell} pixels wide here; the weights change with the picture, and at 90° those of one pose are taken over by the next.`);
  };
}

// An offset in words.
function placed(down, right) {
  const parts = [down && `${Math.abs(down)} ${down > 0 ? "down" : "up"}`, right && `${Math.abs(right)} ${right > 0 ? "right" : "left"}`];
  const steps = parts.filter(Boolean).join(" and ");
  return steps ? `the key ${steps}` : "its own pixel";
}

// The picture, enlarged; the weights as colour over their cells; the pixel that looks, as a square.
function drawLooks(canvas, { weights, reach, cell, row, column, side, zoom, picture }) {
  const context = canvas.getContext("2d");
  canvas.width = canvas.height = side * zoom;
  picture.forEach((value, i) => {
    context.fillStyle = css(grey(value));
    context.fillRect((i % side) * zoom, Math.floor(i / side) * zoom, zoom, zoom);
  });
  const most = Math.max(...weights, 1e-9);
  const size = cell * zoom;
  const [top, left] = [row, column].map((place) => (place - (reach * cell) / 2) * zoom);
  weights.forEach((weight, i) => {
    context.globalAlpha = 0.15 + 0.65 * (weight / most);
    context.fillStyle = css(warm(weight / most));
    context.fillRect(left + (i % reach) * size, top + Math.floor(i / reach) * size, size, size);
  });
  context.globalAlpha = 1;
  context.strokeStyle = "#2ee6ff";
  context.lineWidth = 3;
  context.strokeRect((column - cell / 2) * zoom, (row - cell / 2) * zoom, size, size);
}

function startCurve(data) {
  const [left, right, top, bottom] = [46, 706, 14, 214];
  const x = (degrees) => left + ((right - left) * degrees) / 360;
  const y = (probability) => bottom - (bottom - top) * probability;
  return ({ state, degrees }) => {
    const truth = data.classes.indexOf(data.digits[state.digit]);
    const curves = [0, 1].map((net) =>
      [...data.angles.keys(), 0].map((step) => at(data.probabilities, net, state.digit, state.mirror, state.shift, step)[truth]),
    );
    const path = (values) =>
      values.map((value, i) => `${i ? "L" : "M"}${x((360 * i) / data.angles.length).toFixed(1)} ${y(value).toFixed(1)}`).join("");
    const grid = [0, 0.5, 1].map(
      (p) => `<line class="axis" x1="${left}" x2="${right}" y1="${y(p)}" y2="${y(p)}"/><text x="${left - 8}" y="${y(p) + 4}" text-anchor="end">${p}</text>`,
    );
    const ticks = [0, 90, 180, 270, 360].map((a) => `<text x="${x(a)}" y="${bottom + 26}" text-anchor="${a === 360 ? "end" : "middle"}">${a}°</text>`);
    const here = x(data.angles[state.angle]);
    byId("curve").innerHTML =
      grid.join("") + ticks.join("") +
      `<line class="here" x1="${here}" x2="${here}" y1="${top}" y2="${bottom}"/>` +
      `<path class="own" d="${path(curves[0])}"/><path class="plain" d="${path(curves[1])}"/>`;
    const now = curves.map((values) => percent(values[state.angle]));
    byId("curve").setAttribute(
      "aria-label",
      `Probability of the digit ${data.digits[state.digit]} at ${degrees}: ${now[0]} with ${data.group}, ${now[1]} without it`,
    );
  };
}

function startBars(data) {
  const lists = [data.group, "without the group"].map((title, net) => {
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
