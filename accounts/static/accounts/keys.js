// A second press would be refused by the service, but its answer would replace the page with the secret.
for (const form of document.querySelectorAll("form[data-send-once]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
}

// Coming back with the browser's button restores the page as it was left: let its forms be sent again.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});
