// Buttons that copy what stands beside them.
import { copyFrom } from "../site/clipboard.js";

const copied = document.querySelector("[data-copied]");

for (const button of document.querySelectorAll("[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  button.hidden = false;
  button.addEventListener("click", () => copy(source));
}

async function copy(source) {
  const done = await copyFrom(source);
  // Emptied first, so that a second copy is announced as well.
  copied.textContent = "";
  requestAnimationFrame(() => {
    copied.textContent = done ? "Copied." : "Selected. Press Ctrl+C, or Cmd+C on a Mac.";
  });
}
