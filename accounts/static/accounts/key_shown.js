import "./copying.js";

const shown = document.querySelector("[data-list]");

// From here a reload asks for the list instead of offering to send the form again.
history.replaceState(null, "", shown.dataset.list);

// A page kept for the back button must not bring the secret back.
addEventListener("pagehide", () => shown.replaceChildren());
addEventListener("pageshow", (event) => {
  if (event.persisted) location.replace(shown.dataset.list);
});
