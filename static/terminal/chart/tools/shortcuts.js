// The chart by keyboard. Keys that write something are left alone while somebody writes.
/** For the list of all shortcuts: the keys, and what they do. */
export const SHORTCUTS = [
  { keys: ["1", "–", "6"], does: "Choose the timeframe" },
  { keys: ["Alt", "L"], does: "Switch the logarithmic scale" },
  { keys: ["Alt", "R"], does: "Return to the live price" },
  { keys: ["Alt", "S"], does: "Download a picture of the chart" },
  { keys: ["Alt", "F"], does: "Fill the screen with the chart" },
];
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
