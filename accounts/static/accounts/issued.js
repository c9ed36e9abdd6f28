// The page that shows a new API key, once.
import { copyFrom } from "../site/clipboard.js";

const secret = document.getElementById("secret");
const button = document.getElementById("copy").closest("button");

// Reloading would send the form again and issue another key: lead to the list instead.
history.replaceState(null, "", document.querySelector("[data-leave-to]").dataset.leaveTo);
secret.select();

button.addEventListener("click", async () => {
  document.getElementById("copy").textContent = (await copyFrom(secret)) ? "Copied" : "Press Ctrl+C";
});
