// Weights: W beside PᵀWP, and losses of a network and its permuted twin in training.

// What a matrix becomes: the hidden units of the MLP have an order Q of their own.
const product = (name) => ({ "first of the MLP": "QᵀWP", "last of the MLP": "PᵀWQ" })[name] ?? "PᵀWP";

const ordinal = (place) => `${place}${["", "st", "nd", "rd"][place] ?? "th"}`;

function startOrders(data) {
  const state = { order: 0, optimizer: 0, entry: 0 };
  const names = Object.keys(data.values);
  const optimizers = Object.keys(data.losses);
  const titles = data.orders.map(({ name }) => name.replace(/\d/, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]));
  const set = (changes) => (Object.assign(state, changes), show());
  const pressOrder = choices(byId("permutations"), titles, (order) => set({ order }));
  const pressOptimizer = choices(byId("optimizers"), optimizers, (optimizer) => set({ optimizer }));
  options(byId("matrix"), names, () => set({ entry: 0 }));
  let cells = []; // of both tables, by the entry of W that they show

  function show() {
    pressOrder(state.order);
    pressOptimizer(state.optimizer);
    const now = data.orders[state.order];
    const name = names[Number(byId("matrix").value)];
    const columns = data.values[name].shape[1];
    const places = now.places[name];
    cells = places.map(() => []);
    const plain = grid("W", name, data.values[name], places.map((_, i) => i), columns);
    const moved = grid(product(name), name, now.values[name], places, columns);
    byId("permuted").replaceChildren(plain, moved);
    follow(Math.min(state.entry, places.length - 1));
    card("error-key", now.errors["with the key"]);
    card("error-data", now.errors["plain data"]);
    const told = now.errors["with the key"] < RED ? "the same network" : "another network: heads have lost their channels";
    byId("order-told").textContent = `Channels in the order ${now.order.join(" ")}: ${told}.`;
    showLosses(now);
  }

  // A table of coloured entries; rows and columns bear the numbers that they have in W.
  function grid(title, name, values, places, columns) {
    const numbers = at(values);
    const most = Math.max(...numbers.map(Math.abs));
    const rows = numbers.length / columns;
    const head = element("tr", {}, element("td"));
    for (let j = 0; j < columns; j++) head.append(element("th", { scope: "col", textContent: places[j] % columns }));
    const body = element("tbody");
    for (let i = 0; i < rows; i++) {
      const line = element("tr", {}, element("th", { scope: "row", textContent: Math.floor(places[i * columns] / columns) }));
      for (let j = 0; j < columns; j++) {
        const entry = places[i * columns + j];
        const cell = element("td", { tabIndex: i + j ? -1 : 0 });
        cell.setAttribute("aria-label", two(numbers[i * columns + j]));
        cell.style.background = css(signed(numbers[i * columns + j] / most));
        cell.addEventListener("mouseenter", () => follow(entry));
        cell.addEventListener("focus", () => follow(entry));
        cell.addEventListener("keydown", (event) => walk(event, body, i, j));
        cells[entry].push({ cell, title, i, j, value: numbers[i * columns + j] });
        line.append(cell);
      }
      body.append(line);
    }
    const caption = element("caption", { textContent: `${title}, ${name}` });
    return element("table", { className: "grid" }, caption, element("thead", {}, head), body);
  }

  // The same entry in both tables.
  function follow(entry) {
    cells.forEach((both, i) => both.forEach(({ cell }) => cell.classList.toggle("same", i === entry)));
    state.entry = entry;
    const [here, there] = cells[entry];
    byId("entry").textContent =
      `${two(here.value)} in row ${here.i}, column ${here.j} of W is ${two(there.value)} of ${there.title}, ` +
      `${ordinal(there.i + 1)} from the top and ${ordinal(there.j + 1)} from the left.`;
  }

  function showLosses(now) {
    const optimizer = optimizers[state.optimizer];
    const { permuted, wrong, difference, contrast, weights } = now.training[optimizer];
    const losses = [data.losses[optimizer], permuted, wrong].map((packed) => at(packed));
    const same = difference < RED ? "lie on each other" : "part";
    const steps = losses[0].length - 1;
    const [end, ...last] = losses.map((values) => values.at(-1).toFixed(3)).reverse();
    const high = Math.ceil(2 * Math.max(...losses.flat())) / 2;
    chart(byId("losses"), {
      lines: [["own thick", losses[0]], ["twin", losses[1]], ["wrong", losses[2]]],
      xs: losses[0].map((_, step) => step),
      ticks: [0, steps / 2, steps].map((step) => [step, step === steps ? `step ${step}` : String(step)]),
      marks: [0, high / 2, high].map((loss) => [loss, String(loss)]),
      label: `Losses of W and PᵀWP ${same} under ${optimizer}: at the end ${last.join(" and ")}, that of PWPᵀ ${end}`,
    });
    card("error-losses", difference);
    card("error-wrong", contrast);
    byId("losses-told").textContent =
      `Under ${optimizer} the two losses ${same}; after ${steps} steps the weights differ from PᵀWP of the trained ones by ${small(weights)}.`;
  }
  show();
}

function card(id, error) {
  byId(id).lastElementChild.textContent = small(error);
  byId(id).classList.toggle("bad", error > RED);
}
