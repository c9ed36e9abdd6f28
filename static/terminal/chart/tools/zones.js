// The menu of time zones.
import { keep, kept } from "../../page/kept.js";
import { Zone } from "../zone.js";

const LOCAL = Intl.DateTimeFormat().resolvedOptions().timeZone;

export class Zones {
  constructor(menu, zoned, { exchange }) {
    Object.assign(this, { zoned, exchange, label: menu.querySelector("[data-part=zone]") });
    this.choices = [...menu.querySelectorAll("input[name=zone]")];
    this.chosen = this.choices.find(({ value }) => value === kept("zone")) ?? this.choices[0];
    this.chosen.checked = true;
    menu.addEventListener("change", ({ target }) => {
      this.chosen = target;
      keep("zone", target.value);
      this.show();
    });
  }

  nameOf(value) {
    return { exchange: this.exchange(), local: LOCAL }[value] ?? value;
  }

  /** The exchange may have changed, and with summer so do offsets. */
  show() {
    const now = Date.now() / 1000;
    for (const choice of this.choices) {
      const zone = new Zone(this.nameOf(choice.value));
      choice.closest("label").querySelector("[data-part=offset]").textContent = zone.label(now);
    }
    this.zoned.choose(this.nameOf(this.chosen.value));
    this.label.textContent = this.zoned.chosen.label(now);
  }
}
