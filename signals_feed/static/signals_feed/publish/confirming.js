// Nothing is published before somebody has read what can never be changed. Its figures follow the market.
export class Confirming {
  #dialog = document.querySelector("[data-confirm]");
  #sure = this.#dialog.querySelector("[data-sure]");
  #why = this.#dialog.querySelector("[data-why-not]");
  #form;
  #preview;

  constructor(form) {
    this.#form = form;
    this.#dialog.querySelector("[data-back]").addEventListener("click", () => this.#dialog.close());
    this.#sure.addEventListener("click", () => this.#send());
  }

  show(preview) {
    this.#fill(preview);
    this.#refuse("");
    this.#dialog.showModal();
  }

  /** While somebody thinks, the market moves on; `why` tells that it has closed. */
  follow(preview, why) {
    if (!this.#dialog.open) return;
    if (preview.risk) this.#fill(preview);
    else this.#fill(this.#preview, "last");
    this.#refuse(why || Object.values(preview.faults ?? {})[0] || "");
  }

  lose() {
    if (!this.#dialog.open) return;
    this.#fill(this.#preview, "last");
    this.#refuse("The quote could not be loaded. Trying again…");
  }

  #refuse(why) {
    this.#why.hidden = !why;
    // Read out again only when it changes.
    if (this.#why.textContent !== why) this.#why.textContent = why;
    this.#sure.disabled = Boolean(why);
  }

  #fill(preview, when = "now") {
    this.#preview = preview;
    const { symbol, direction } = this.#form.elements;
    const fill = (name, text) => (this.#dialog.querySelector(`[data-part="${name}"]`).textContent = text);
    fill("what", `${direction.selectedOptions[0].text} ${symbol.value}`);
    for (const name of ["stop_loss", "take_profit", "ratio"]) fill(name, preview[name]);
    fill("entry", preview.is_at_market ? `Market price, ${when} ${preview.entry}` : preview.entry);
    for (const name of ["risk", "reward"]) fill(name, `${preview[name].r}, ${preview[name].gain}`);
  }

  /** A second press sends nothing. */
  #send() {
    if (this.#form.dataset.sent) return;
    this.#form.dataset.sent = "yes";
    this.#form.submit();
  }
}
