// Weights: hidden units that start equal, at random, or equal with dropout.

function startStarts(data) {
  const state = { optimizer: 0, step: 0 };
  const kinds = ["plain", "own", "third"];
  const set = (changes) => (Object.assign(state, changes), show());
  const press = choices(byId("start-optimizers"), data.optimizers, (optimizer) => set({ optimizer }));
  const slider = byId("step");
  slider.max = data.steps.length - 1;
  slider.addEventListener("input", () => set({ step: Number(slider.value) }));
  const tiles = data.starts.map((name, i) => {
    const { canvas, line } = tile(byId("units"), "");
    line.append(element("b", { className: `key ${kinds[i]}`, textContent: name }), element("span"));
    return { canvas, line: line.lastElementChild };
  });
  const last = data.steps.at(-1);
  const ticks = [0, last / 2, last].map((step) => [step, step === last ? `step ${step}` : String(step)]);

  function show() {
    press(state.optimizer);
    slider.value = state.step;
    slider.setAttribute("aria-valuetext", `step ${data.steps[state.step]}`);
    byId("step-told").textContent = data.steps[state.step];
    const counts = data.different[state.optimizer];
    const when = `step ${data.steps[state.step]} of ${data.optimizers[state.optimizer]}`;
    const count = data.units.shape[3];
    const most = Math.max(...at(data.units, state.optimizer).map(Math.abs)); // of all starts: one scale of colours
    const losses = data.starts.map((_, start) => at(data.loss, state.optimizer, start));
    const now = data.starts.map((name, start) => {
      const units = at(data.units, state.optimizer, start, state.step);
      const different = counts[start][state.step];
      const told = different === 1 ? `one unit, ${count} times` : `${different} different units`;
      paint(tiles[start].canvas, units, units.length / count, (value) => signed((2 * value) / most), `${name}, ${when}: ${told}`);
      tiles[start].line.textContent = told;
      return `${name} ${losses[start][state.step].toPrecision(2)}`;
    });
    const lines = (values) => values.map((line, i) => [kinds[i], line]);
    const shared = { xs: data.steps, ticks, here: data.steps[state.step] };
    const [low, high] = [0.001, 10];
    const marks = [0.001, 0.01, 0.1, 1, 10].map((loss) => [loss, String(loss)]);
    const bounded = losses.map((values) => values.map((value) => Math.min(Math.max(value, low), high)));
    chart(byId("start-losses"), { ...shared, lines: lines(bounded), marks, log: true, label: `Losses at ${when}: ${now.join(", ")}` });
    const widths = counts.map((values, start) => `${data.starts[start]} ${values[state.step]}`);
    const whole = [[0, "0"], [count / 2, String(count / 2)], [count, String(count)]];
    chart(byId("widths"), { ...shared, lines: lines(counts), marks: whole, label: `Different units at ${when}: ${widths.join(", ")}` });
  }
  show();
}
