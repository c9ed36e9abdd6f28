// The chart by keyboard. Character keys are ignored while the user types.
const TOOLS = { KeyL: "log", KeyR: "live", KeyS: "picture", KeyF: "fullscreen" };
const WRITING = "input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable], dialog";

export function listen(pane, timeframes) {
  addEventListener("keydown", (event) => {
    const { altKey, ctrlKey, metaKey, code, key, target } = event;
    if (ctrlKey || metaKey || target.closest?.(WRITING)) return;
    const control = altKey ? pane.querySelector(`[data-tool=${TOOLS[code]}]`) : timeframes[Number(key) - 1];
    if (!control) return;
    event.preventDefault();
    control.click();
  });
}
