// One tab at a time; arrow keys, Home and End go from tab to tab.

function startTabs() {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const choose = (chosen) => {
    for (const tab of tabs) {
      const on = tab === chosen;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      byId(tab.getAttribute("aria-controls")).hidden = !on;
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
  startTabs();
  startTurn(data.turn, data.names);
  startWords(data.words);
  startOrders(data.weights.reordered);
  startStarts(data.weights.starts);
  startBiases(data.weights.biases);
  startLayers(data.layers);
  document.body.dataset.ready = "yes";
})();
