// The page that shows a new API key, once.

const secret = document.getElementById("secret");
const button = document.getElementById("copy").closest("button");

// Reloading would send the form again and issue another key: lead to the list instead.
history.replaceState(null, "", document.querySelector("[data-leave-to]").dataset.leaveTo);
secret.select();

button.addEventListener("click", async () => {
  secret.select();
  try {
    await navigator.clipboard.writeText(secret.value);
    document.getElementById("copy").textContent = "Copied";
  } catch {
    // Without HTTPS there is no clipboard: the key stays selected, to be copied by hand.
    document.getElementById("copy").textContent = "Press Ctrl+C";
  }
});
