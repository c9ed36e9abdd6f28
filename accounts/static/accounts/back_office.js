// htmx would add a style element of its own, which the policy forbids and unfold does not need.
htmx.config.includeIndicatorStyles = false;

// Narrow lists repeat the head of each column in every row, where unfold leaves names of fields as they are.
document.addEventListener("DOMContentLoaded", () => {
  for (const cell of document.querySelectorAll("[data-label]")) {
    cell.dataset.label = cell.dataset.label.charAt(0).toUpperCase() + cell.dataset.label.slice(1);
  }
});

// One choice of theme for the site and the back office, under the site's key: unfold calls "system" "auto".
(() => {
  const KEY = "tickwire-theme";
  const OURS = { auto: "system", light: "light", dark: "dark" };
  const THEIRS = { system: "auto", light: "light", dark: "dark" };

  try {
    // Before Alpine reads it.
    localStorage.setItem("adminTheme", JSON.stringify(THEIRS[localStorage.getItem(KEY)] ?? "auto"));
  } catch {
    return; // Storage is switched off: the choice lasts as long as the page.
  }

  document.addEventListener("alpine:initialized", () => {
    const page = Alpine.$data(document.documentElement);
    Alpine.effect(() => localStorage.setItem(KEY, OURS[page.adminTheme]));
    addEventListener("storage", ({ key, newValue }) => {
      if (key === KEY) page.adminTheme = THEIRS[newValue] ?? "auto";
    });
  });
})();
