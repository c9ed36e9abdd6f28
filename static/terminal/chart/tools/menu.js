// A panel below a button of the toolbar: closed by Escape, or by whatever happens outside of it.
export function closing(menu) {
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
    event.stopPropagation();
  });
  for (const happening of ["pointerdown", "focusin"]) {
    document.addEventListener(happening, ({ target }) => {
      if (!menu.contains(target)) menu.open = false;
    });
  }
}
