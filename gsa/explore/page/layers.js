// The last tab: the error of every layer of a network, as bars.

function startLayers(networks) {
  const state = { network: 0 };
  const choose = (network) => (Object.assign(state, { network }), begin());
  const press = choices(byId("models"), networks.map((network) => network.name), choose);
  const ofGroup = byId("of-group");
  const depth = byId("depth");
  options(depth, ["outermost layers", "two levels", "all levels"], show);
  depth.value = "1";
  options(ofGroup, [], show);

  function begin() {
    press(state.network);
    const { layers } = networks[state.network];
    options(ofGroup, ["worst of the exact ones", ...Object.keys(Object.values(layers)[0])]);
    show();
  }

  function show() {
    const { layers, exact, tolerance, first_broken: broken, unjudged, group, name } = networks[state.network];
    const names = Object.keys(layers);
    const whole = names.at(-1);
    const chosen = ofGroup.selectedOptions[0].textContent;
    const isWorst = ofGroup.value === "0";
    const judged = isWorst || exact.includes(chosen);
    const deepest = [1, 2, Infinity][Number(depth.value)];
    const rows = names
      .filter((layer) => layer === whole || layer === broken || layer.split(".").length <= deepest)
      .map((layer) => {
        const errors = isWorst ? exact.map((g) => layers[layer][g]) : [layers[layer][chosen]];
        const error = errors.includes(null) ? Infinity : Math.max(...errors);
        const bar = element("i");
        bar.style.width = `${100 * logarithmic(error)}%`;
        const kind = !judged ? "sampled" : error > tolerance ? "bad" : "good";
        const words = (layer === whole ? `${layer} (the whole)` : layer).split(/(?<=\.)/); // a line may end behind a dot
        const title = element("th", { scope: "row" }, ...words.flatMap((word) => [element("wbr"), word]));
        const number = Number.isFinite(error) ? small(error) : "not a number";
        const first = layer === broken ? " first" : "";
        return element("tr", { className: kind + first }, title, element("td", {}, bar), element("td", { textContent: number }));
      });
    byId("layers").tBodies[0].replaceChildren(...rows);
    const layer = Object.keys(unjudged).length ? `layer of which ${group} says something` : "layer";
    byId("broken").textContent = broken
      ? `${name} loses a symmetry of ${group} in ${broken}: it is the first ${layer} above ${tolerance.toExponential(0)}.`
      : `${name} keeps every exact element of ${group} in every ${layer}, to ${tolerance.toExponential(0)}.`;
  }
  begin();
}
