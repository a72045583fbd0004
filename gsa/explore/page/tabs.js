// One tab at a time; arrow keys, Home and End go from tab to tab. `open` is called with the name of the chosen one.

function startTabs(open) {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const choose = (chosen) => {
    for (const tab of tabs) {
      const on = tab === chosen;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      byId(tab.getAttribute("aria-controls")).hidden = !on;
      if (on) open(tab.id.replace("tab-", ""));
    }
  };
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", (event) => {
      const next = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: -1 }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      const goal = tabs.at(next % tabs.length);
      choose(goal);
      goal.focus();
    });
  });
}

(async () => {
  const data = await unpackAll(JSON.parse(byId("data").textContent));
  const starts = {
    words: startWords,
    weights: ({ reordered, starts, biases }) => (startOrders(reordered), startStarts(starts), startBiases(biases)),
    layers: startLayers,
  };
  const begin = async (name) => {
    const start = starts[name];
    delete starts[name];
    if (start) start(data[name] ?? (await askPart(name, data.asks)));
  };
  startTabs(begin);
  startTurn(data);
  if (!data.turn.live) Object.keys(starts).forEach(begin);
  document.body.dataset.ready = "yes";
})();
