// One day of a component takes part in the tab order; the arrow keys go on from there.
const STEPS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

// The lists themselves are replaced by later ones.
document.addEventListener("keydown", (event) => {
  const list = event.target.closest(".days");
  const step = STEPS[event.key];
  if (!list || step === undefined) return;
  event.preventDefault();
  const days = [...list.children].filter((day) => day.offsetParent);
  const to = Math.max(0, Math.min(days.length - 1, days.indexOf(event.target) + step));
  days[to].focus();
});
document.addEventListener("focusin", ({ target }) => {
  for (const day of target.closest(".days")?.children ?? []) day.tabIndex = day === target ? 0 : -1;
});
