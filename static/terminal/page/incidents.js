// Incidents that staff have published, while they last.
export class Incidents {
  constructor(place, template) {
    Object.assign(this, { place, template });
  }

  show(incidents) {
    const shown = JSON.stringify(incidents);
    if (shown === this.shown) return;
    this.shown = shown;
    this.place.replaceChildren(...incidents.map((incident) => this.item(incident)));
  }

  item({ title, impact, kind }) {
    const item = this.template.content.cloneNode(true).firstElementChild;
    item.classList.add(impact);
    item.querySelector("[data-part=title]").textContent = title;
    item.querySelector("[data-part=kind]").textContent = kind;
    return item;
  }
}
