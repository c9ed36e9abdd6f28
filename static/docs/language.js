// Loaded before the first paint, so that no sample is shown in one language and then in another.
(() => {
  const LANGUAGES = ["shell", "python", "javascript"];
  let kept = null;
  try {
    kept = localStorage.getItem("tickwire-language");
  } catch {} // Storage is switched off.
  document.documentElement.dataset.language = LANGUAGES.includes(kept) ? kept : "python";
})();
