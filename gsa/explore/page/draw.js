// Small pictures of numbers, and the elements that hold them.

const byId = (id) => document.getElementById(id);

function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

const grey = (value) => [255 * value, 255 * value, 255 * value];

// 0 → dark violet, 1 → pale yellow.
function warm(value) {
  const stops = [[13, 8, 60], [120, 28, 109], [229, 92, 48], [252, 245, 150]];
  const place = Math.min(Math.max(value, 0), 1) * 3;
  const i = Math.min(Math.floor(place), 2);
  return stops[i].map((start, c) => start + (stops[i + 1][c] - start) * (place - i));
}

// −1 → blue, 0 → white, 1 → red.
function signed(value) {
  const end = value < 0 ? [33, 102, 172] : [178, 24, 43];
  const part = Math.min(Math.abs(value), 1);
  return end.map((channel) => 255 + (channel - 255) * part);
}

const css = (colour) => `rgb(${colour.map(Math.round).join(" ")})`;

// A tile with a canvas of width × height pixels and a line below it; `paint` draws on the canvas.
function tile(parent, title, small = false) {
  const canvas = element("canvas", { role: "img" });
  const line = element("div", { textContent: title });
  parent.append(element("div", { className: small ? "tile small" : "tile" }, canvas, line));
  return { canvas, line };
}

function paint(canvas, numbers, width, colour, label) {
  const height = numbers.length / width;
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  numbers.forEach((value, i) => image.data.set([...colour(value), 255], 4 * i));
  context.putImageData(image, 0, 0);
  canvas.setAttribute("aria-label", label);
}

// Buttons of which one is pressed.
function choices(fieldset, names, choose) {
  const row = element("div");
  const buttons = names.map((name, i) => {
    const button = element("button", { type: "button", textContent: name });
    button.addEventListener("click", () => choose(i));
    row.append(button);
    return button;
  });
  fieldset.append(row);
  return (chosen) => buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === chosen)));
}

function options(select, names, change) {
  select.replaceChildren(...names.map((name, i) => element("option", { value: i, textContent: name })));
  if (change) select.addEventListener("change", change);
}

// Arrow keys go from entry to entry of a table.
function walk(event, body, i, j) {
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  if (!step) return;
  event.preventDefault();
  body.rows[i + step[0]]?.querySelectorAll("td")[j + step[1]]?.focus();
}

// Lines over an axis: `lines` are [class, numbers at xs], `ticks` and `marks` [number, text] below and on the left, whose
// outermost marks bound the height; `here` is a vertical line.
function chart(svg, { lines, xs, ticks, marks, here, label, log = false }) {
  const [left, right, top, bottom] = [74, 706, 14, svg.viewBox.baseVal.height - 36];
  const scale = (value) => (log ? Math.log10(value) : value);
  const [low, high] = [marks[0], marks.at(-1)].map(([value]) => scale(value));
  const x = (value) => left + ((right - left) * (value - xs[0])) / (xs.at(-1) - xs[0]);
  const y = (value) => bottom - ((bottom - top) * (scale(value) - low)) / (high - low);
  const point = (value, i, values) =>
    value === undefined ? "" : `${i && values[i - 1] !== undefined ? "L" : "M"}${x(xs[i]).toFixed(1)} ${y(value).toFixed(1)}`;
  const path = (values) => values.map(point).join(""); // with gaps, where a value is not known
  const grid = marks.map(
    ([value, text]) =>
      `<line class="axis" x1="${left}" x2="${right}" y1="${y(value)}" y2="${y(value)}"/>` +
      `<text x="${left - 8}" y="${y(value) + 4}" text-anchor="end">${text}</text>`,
  );
  const end = ticks.at(-1)[0];
  const below = ticks.map(([value, text]) => `<text x="${x(value)}" y="${bottom + 28}" text-anchor="${value === end ? "end" : "middle"}">${text}</text>`);
  const line = here === undefined ? "" : `<line class="here" x1="${x(here)}" x2="${x(here)}" y1="${top}" y2="${bottom}"/>`;
  svg.innerHTML = grid.join("") + below.join("") + line + lines.map(([kind, values]) => `<path class="${kind}" d="${path(values)}"/>`).join("");
  svg.setAttribute("aria-label", label);
}

// Where an error stands between 1e-16 and about 3, from 0 to 1.
function logarithmic(error) {
  return Math.min(Math.max((Math.log10(Math.max(error, 1e-99)) + 16) / 16.5, 0), 1);
}

const percent = (value) => `${(100 * value).toFixed(0)}\u00a0%`;
const small = (value) => (value === 0 ? "0" : value < 0.01 ? value.toExponential(1) : value.toFixed(2));
