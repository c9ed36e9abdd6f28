// Shows a notice when a script of the page could not be loaded.
(() => {
  const IMPORT = /import.*module/i;

  function tell() {
    if (document.readyState === "loading") return addEventListener("DOMContentLoaded", tell, { once: true });
    if (document.getElementById("unloaded")) return undefined;
    const notice = Object.assign(document.createElement("p"), { id: "unloaded", className: "notice error", role: "alert" });
    const again = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: "Reload it" });
    again.addEventListener("click", () => location.reload());
    notice.append("Part of this page could not be loaded. ", again);
    document.getElementById("content").prepend(notice);
    return undefined;
  }

  // Heard on its way down, because it does not come up again. A file that was cut off is no script.
  const isMissing = ({ target, error }) => target instanceof HTMLScriptElement || error instanceof SyntaxError;
  addEventListener("error", (event) => {
    if (!isMissing(event)) return;
    document.documentElement.classList.add("unloaded");
    tell();
  }, true);
  addEventListener("unhandledrejection", ({ reason }) => {
    if (reason instanceof SyntaxError || IMPORT.test(reason?.message)) tell();
  });
  addEventListener("tickwire:unloaded", tell);
})();
