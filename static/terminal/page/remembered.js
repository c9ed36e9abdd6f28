// Run before the first paint: the room that remembered indicators take, so that nothing moves when they are drawn.
(() => {
  const WITH_PANE = ["rsi", "macd"];

  function kept() {
    try {
      return Object(JSON.parse(localStorage.getItem("tickwire-indicators")));
    } catch {
      return {}; // Storage is switched off, or was edited by hand.
    }
  }

  const on = Object.entries(kept()).filter(([, choice]) => choice?.on);
  document.getElementById("chart").dataset.panes = 1 + on.filter(([name]) => WITH_PANE.includes(name)).length;
  document.querySelector("[data-part=count]").textContent = on.length || "";
})();
