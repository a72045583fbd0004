// The second tab: three words in any order, with any encoding, anywhere in a text.

const MATRICES = {
  embeddings: "X", added: "p, added", inputs: "X + p", query: "Q", key: "K", value: "V",
  turned_query: "Q, turned", turned_key: "K, turned", scores: "scores", attention: "attention", output: "output",
};
const ALWAYS = ["embeddings", "query", "key", "value", "scores", "attention", "output"];
const JUDGED = ["query", "key", "value", "attention", "output"];

function startWords(data) {
  const state = { order: 0, encoding: 0, position: 0 };
  const set = (changes) => (Object.assign(state, changes), show());
  const spoken = data.orders.map((order) => order.map((i) => data.words[i]).join(" "));
  const pressOrder = choices(byId("orders"), spoken, (order) => set({ order }));
  const pressEncoding = choices(byId("encodings"), data.encodings, (encoding) => set({ encoding }));
  const position = byId("position");
  position.max = data.positions - 1;
  position.addEventListener("input", () => set({ position: Number(position.value) }));
  const place = () => [state.encoding, state.order, state.position];

  function shown() {
    const encoding = data.encodings[state.encoding];
    const more = { rotary: ["turned_query", "turned_key"], absolute: ["added", "inputs"], sinusoidal: ["added", "inputs"] };
    return Object.keys(MATRICES).filter((name) => ALWAYS.includes(name) || (more[encoding] ?? []).includes(name));
  }

  function show() {
    pressOrder(state.order);
    pressEncoding(state.encoding);
    position.value = state.position;
    position.setAttribute("aria-valuetext", `first word at ${state.position}`);
    byId("position-told").textContent = state.position;
    const rows = data.orders[state.order].map((i) => data.words[i]);
    const values = {};
    for (const name of Object.keys(MATRICES)) {
      const numbers = at(data.values[name], ...place());
      const columns = numbers.length / 3;
      values[name] = [0, 1, 2].map((row) => numbers.slice(row * columns, (row + 1) * columns));
    }
    const stayed = (name) => place().reduce((inner, i) => inner[i], data.stayed[name]);
    byId("matrices").replaceChildren(...shown().map((name) => table(name, values, rows, stayed(name))));
    const same = JUDGED.filter((name) => stayed(name).every(Boolean)).map((name) => MATRICES[name]);
    byId("stayed").textContent = same.length
      ? `Every word keeps its rows of ${same.join(", ")}.`
      : "No matrix keeps all of its rows: with this encoding, what a word does depends on where it stands.";
  }

  function table(name, values, rows, stayed) {
    const numbers = values[name];
    const most = Math.max(...numbers.flat().map(Math.abs), 1e-9);
    const made = element("table", { id: `matrix-${name}` }, element("caption", { textContent: MATRICES[name] }));
    const square = numbers[0].length === 3;
    const head = element("tr", {}, element("td"));
    const columns = square ? rows : numbers[0].map((_, channel) => String(channel + 1));
    head.append(...columns.map((textContent) => element("th", { textContent, scope: "col" })));
    made.append(element("thead", {}, head));
    const body = element("tbody");
    numbers.forEach((row, i) => {
      const line = element("tr", { className: stayed[i] ? "stayed" : "" });
      const title = element("th", { textContent: rows[i], scope: "row" });
      if (stayed[i]) title.setAttribute("aria-label", `${rows[i]}, stayed equal`);
      line.append(title);
      row.forEach((value, j) => {
        const cell = element("td", { textContent: two(value), tabIndex: i + j ? -1 : 0 });
        cell.style.background = css(signed((0.65 * value) / most));
        cell.addEventListener("mouseenter", () => tell(name, i, j, values, rows));
        cell.addEventListener("focus", () => tell(name, i, j, values, rows));
        cell.addEventListener("keydown", (event) => walk(event, body, i, j));
        line.append(cell);
      });
      body.append(line);
    });
    made.append(body);
    return made;
  }

  function tell(name, i, j, values, rows) {
    const entry = `${MATRICES[name]} of “${rows[i]}”, ${values[name][0].length === 3 ? `“${rows[j]}”` : `channel ${j + 1}`}`;
    byId("formula").textContent = `${entry} = ${explained(name, i, j, values, data.weights, state.position)}`;
  }
  show();
}

const two = (value) => (Math.round(100 * value) / 100 + 0).toFixed(2).replace("-", "−"); // + 0: no −0.00
const inBrackets = (value) => (two(value).startsWith("−") ? `(${two(value)})` : two(value));

function sumOfProducts(first, second) {
  return first.map((value, k) => `${inBrackets(value)}·${inBrackets(second[k])}`).join(" + ");
}

// How an entry is computed, with its numbers.
function explained(name, i, j, values, weights, position) {
  const result = two(values[name][i][j]);
  const column = (matrix) => matrix.map((row) => row[j]);
  if (name === "embeddings") return `${result}, given with the word`;
  if (name === "added") return `${result}, of the position ${position + i}`;
  if (name === "inputs") return `${inBrackets(values.embeddings[i][j])} + ${inBrackets(values.added[i][j])} = ${result}`;
  if (name in weights) return `${sumOfProducts(values.inputs[i], column(weights[name]))} = ${result}`;
  if (name.startsWith("turned_")) {
    const [first, second] = values[name.slice(7)][i].map(inBrackets);
    const t = position + i;
    return (j ? `${first}·sin ${t} + ${second}·cos ${t}` : `${first}·cos ${t} − ${second}·sin ${t}`) + ` = ${result}`;
  }
  if (name === "scores") return `(${sumOfProducts(values.turned_query[i], values.turned_key[j])}) / √2 = ${result}`;
  if (name === "attention") {
    const sum = values.scores[i].map((score) => `exp(${two(score)})`).join(" + ");
    return `exp(${two(values.scores[i][j])}) / (${sum}) = ${result}`;
  }
  return `${sumOfProducts(values.attention[i], column(values.value))} = ${result}`;
}
