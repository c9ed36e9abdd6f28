// Buttons that copy what stands beside them.

const copied = document.querySelector("[data-copied]");

for (const button of document.querySelectorAll("[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  button.hidden = false;
  button.addEventListener("click", () => copy(source));
}

async function copy(source) {
  const done = (await toClipboard(source.textContent)) || selectAndCopy(source);
  // Emptied first, so that a second copy is announced as well.
  copied.textContent = "";
  requestAnimationFrame(() => {
    copied.textContent = done ? "Copied." : "Selected. Press Ctrl+C, or Cmd+C on a Mac.";
  });
}

async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Absent outside https and this machine, and a person may forbid it.
    return false;
  }
}

function selectAndCopy(source) {
  getSelection().selectAllChildren(source);
  return document.execCommand("copy");
}
