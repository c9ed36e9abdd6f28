// Loaded before the first paint, so that no page flashes in the other theme: light, dark, or as the system has it.
(() => {
  const KEY = "tickwire-theme";
  const ORDER = ["system", "light", "dark"];
  const root = document.documentElement;
  let theme = kept();

  function kept() {
    try {
      const name = localStorage.getItem(KEY);
      return ORDER.includes(name) ? name : "system";
    } catch {
      return "system"; // Storage is switched off: the choice lasts as long as the page.
    }
  }

  function choose(name) {
    theme = name;
    try {
      localStorage.setItem(KEY, name);
    } catch {} // As above.
    show();
  }

  function show() {
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) {
      button.hidden = false;
      button.dataset.shows = theme;
      button.setAttribute("aria-label", `Theme: ${theme}`);
      button.title = `Theme: ${theme}. Switch to ${after(theme)}.`;
    }
    document.dispatchEvent(new CustomEvent("tickwire:theme"));
  }

  function after(name) {
    return ORDER[(ORDER.indexOf(name) + 1) % ORDER.length];
  }

  show();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  addEventListener("DOMContentLoaded", () => {
    show();
    document.getElementById("theme")?.addEventListener("click", () => choose(after(theme)));
  });
  // Another tab has chosen.
  addEventListener("storage", ({ key }) => {
    if (key !== KEY) return;
    theme = kept();
    show();
  });
})();
