// What allauth's script does not say: whether passkeys work here, and in words why one did not.

const trouble = document.querySelector("[data-passkey-trouble]");

const button = document.querySelector("[data-passkey]");

if (window.PublicKeyCredential) {
  button.hidden = false;
  button.addEventListener("click", () => { trouble.hidden = true; });
  // The Enter key in a field would send the form without a passkey.
  button.form.addEventListener("submit", (event) => {
    event.preventDefault();
    button.click();
  });
} else if (button.dataset.passkey === "needed") {
  say("This browser does not support passkeys. Use another browser or an authenticator app.");
}

document.addEventListener("allauth.error", (event) => {
  event.preventDefault();
  say(words(event.detail.exception));
});

function say(text) {
  trouble.textContent = text;
  trouble.hidden = false;
}

function words(error) {
  switch (error.name) {
    case "NotAllowedError":
      return "No passkey was used: your device did not respond, or you cancelled. Try again.";
    case "InvalidStateError":
      return "This device already holds a passkey for your account.";
    case "SecurityError":
      return "Browsers keep passkeys for host names with https, or for localhost. "
        + `Open this page by its name, not at ${location.hostname}.`;
    default:
      return "That did not work. Try again, or log in another way.";
  }
}
