// Where heads of the first tab look, and their encodings.

function startLooking(data, state, again) {
  const ends = ["first", "last"];
  const view = tile(byId("looking"), "");
  const zoom = 24;
  const tiles = data.poses.map((pose) => tile(byId("encoding"), pose, true));
  const which = () => ends[Number(byId("layer").value)];
  const layer = () => data.layers[which()];
  byId("encoding").parentElement.classList.toggle("many", tiles.length > 8);
  view.canvas.tabIndex = 0;

  const heads = () => {
    options(byId("head"), Array.from({ length: layer().heads }, (_, i) => String(i)));
    byId("head").value = layer().by === "position" ? "1" : "0"; // the first one by position looks at the pixel itself
  };
  options(byId("layer"), ends.map((end) => `${end}, by ${data.layers[end].by}`), () => (heads(), again()));
  options(byId("pose"), data.poses, again);
  const taken = isTurned(data) ? ", and at an angle of the group those of one pose are taken over by another" : "";
  heads();
  byId("head").addEventListener("change", again);
  const move = (row, column) => {
    const { crop } = data.layers.first;
    state.pixel = [row, column].map((place) => Math.min(Math.max(place, crop), data.side - 1 - crop));
    again();
  };
  view.canvas.addEventListener("click", (event) => {
    const side = data.side / view.canvas.clientWidth;
    move(Math.floor(event.offsetY * side), Math.floor(event.offsetX * side));
  });
  view.canvas.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    move(state.pixel[0] + step[0], state.pixel[1] + step[1]);
  });

  return ({ picture, attention: ofState }) => {
    const { side } = data;
    const { attention, by, encoding, cell, map } = layer();
    const [head, pose] = [Number(byId("head").value), Number(byId("pose").value)];
    const free = which() === "first";
    const weights = by === "position" ? at(attention, head, pose) : ofState(which(), head, pose); // by position: in every state
    const reach = Math.sqrt(weights.length);
    const middle = (side + (map % 2 ? 0 : cell)) / 2; // of the pixel in the middle, or after it
    const [row, column] = free ? state.pixel.map((place) => place + 0.5) : [middle, middle];
    paint(view.canvas, picture, side, grey, "");
    drawLooks(view.canvas, { weights, reach, cell, row, column, side, zoom, picture });
    const best = weights.indexOf(Math.max(...weights));
    const sum = weights.reduce((a, b) => a + b, 0);
    const goal = placed(Math.floor(best / reach) - (reach - 1) / 2, (best % reach) - (reach - 1) / 2);
    const label = `head ${head} in pose ${data.poses[pose]} looks most at ${goal}, with ${percent(Math.max(...weights) / sum)}`;
    view.canvas.setAttribute("aria-label", `${label}; ${free ? "arrow keys move the pixel" : "the pixel in the middle"}`);
    view.canvas.dataset.weights = weights.map((weight) => weight.toFixed(3)).join(" ");
    view.line.textContent = free ? `pixel in row ${state.pixel[0]}, column ${state.pixel[1]}` : map > 1 ? "the middle of the last map" : "the one pixel of the last map";
    tiles.forEach(({ canvas }, h) => {
      const scores = at(encoding, head, h);
      const least = Math.min(...data.poses.flatMap((_, other) => at(encoding, head, other)));
      paint(canvas, scores, Math.sqrt(scores.length), (value) => warm(1 - value / (least || -1)), `encoding of head ${head} as pose ${data.poses[h]} sees it`);
      canvas.style.borderColor = h === pose ? "var(--own)" : "";
      canvas.style.borderWidth = h === pose ? "3px" : "";
    });
    byId("looks").textContent =
      `${label[0].toUpperCase()}${label.slice(1)}. ` +
      (by === "position"
        ? `Heads of this layer look by position alone: the same on every picture${data.keeps ? ", turned with the pose" : ""}.`
        : `A key is ${cell === 1 ? "a pixel" : `${cell}×${cell} pixels wide`} here; the weights change with the picture${taken}.`) +
      " The brighter, the larger: palest is the largest weight of this head and pose, and of the encodings the largest of this head." +
      (free ? " Click on the picture, or use arrow keys on it, to choose the pixel." : "");
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
