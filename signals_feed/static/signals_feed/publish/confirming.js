// Nothing is published before somebody has read what can never be changed.
export class Confirming {
  #dialog = document.querySelector("[data-confirm]");
  #form;

  constructor(form) {
    this.#form = form;
    this.#dialog.querySelector("[data-back]").addEventListener("click", () => this.#dialog.close());
    this.#dialog.querySelector("[data-sure]").addEventListener("click", () => this.#send());
  }

  show(preview) {
    const { symbol, direction } = this.#form.elements;
    const fill = (name, text) => (this.#dialog.querySelector(`[data-part="${name}"]`).textContent = text);
    fill("what", `${direction.selectedOptions[0].text} ${symbol.value}`);
    for (const name of ["stop_loss", "take_profit", "ratio"]) fill(name, preview[name]);
    fill("entry", preview.is_at_market ? `Market price, now ${preview.entry}` : preview.entry);
    for (const name of ["risk", "reward"]) fill(name, `${preview[name].r}, ${preview[name].gain}`);
    this.#dialog.showModal();
  }

  /** A second press sends nothing. */
  #send() {
    if (this.#form.dataset.sent) return;
    this.#form.dataset.sent = "yes";
    this.#form.submit();
  }
}
