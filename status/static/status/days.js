// One day of a component takes part in the tab order; the arrow keys go on from there.
const STEPS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

for (const list of document.querySelectorAll(".days")) {
  list.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const days = [...list.children].filter((day) => day.offsetParent);
    const to = Math.max(0, Math.min(days.length - 1, days.indexOf(event.target) + step));
    days[to].focus();
  });
  list.addEventListener("focusin", ({ target }) => {
    for (const day of list.children) day.tabIndex = day === target ? 0 : -1;
  });
}
