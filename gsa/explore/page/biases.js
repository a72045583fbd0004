// Weights: biases of growing size, and what they change.

const DOES = {
  void: ["good", "does nothing"],
  matters: ["sampled", "matters"],
  passes: ["good", "passes as it is: the change beyond that"],
};

function startBiases(data) {
  const slider = byId("size");
  slider.max = data.sizes.length - 1;
  slider.value = data.sizes.indexOf(1);
  slider.addEventListener("input", show);
  const rows = data.cases.map(({ name, does }) => {
    const canvas = element("canvas", { role: "img" });
    const bar = element("i");
    const number = element("td");
    const title = element("th", { scope: "row" }, name, element("small", { textContent: DOES[does][1] }));
    byId("biases").tBodies[0].append(
      element("tr", { className: DOES[does][0] }, title, element("td", {}, canvas), element("td", {}, element("span", { className: "track" }, bar)), number),
    );
    return { canvas, bar, number };
  });

  function show() {
    const size = Number(slider.value);
    byId("size-told").textContent = data.sizes[size];
    slider.setAttribute("aria-valuetext", `${data.sizes[size]}`);
    rows.forEach(({ canvas, bar, number }, i) => {
      const { name, errors, outputs } = data.cases[i];
      const most = Math.max(...at(outputs, 0).map(Math.abs));
      paint(canvas, at(outputs, size), outputs.shape[2], (value) => signed(value / most), `output, ${name}: changes by ${small(errors[size])}`);
      bar.style.width = `${100 * logarithmic(errors[size])}%`;
      number.textContent = small(errors[size]);
    });
  }
  show();
}
