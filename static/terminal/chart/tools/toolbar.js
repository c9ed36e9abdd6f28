// The row above the chart: timeframes, indicators, scale, zone, picture and full screen.
import { keep, kept, keptObject } from "../../page/kept.js";
import { write } from "../../format.js";
import { PriceScaleMode } from "../charts.js";
import { INDICATORS } from "../indicators/index.js";
import { closing } from "./menu.js";

const LIMITS = { min: 1, max: 500, step: 1 };

export class Toolbar {
  /** `facts` answers the name of the instrument that is shown. */
  constructor(pane, { chart, studies, zoned, facts }) {
    Object.assign(this, { pane, chart, studies, zoned, facts });
    for (const menu of pane.querySelectorAll("details.menu")) closing(menu);
    this.button("log", () => this.scale(!this.isLog));
    this.button("picture", async () => {
      const { savePicture } = await import("./picture.js");
      savePicture(this.chart, this.zoned, { ...this.facts(), phrases: this.phrases(), studies: this.studies.inOrder() });
    });
    this.button("fullscreen", () => this.fill());
    this.tool("fullscreen").hidden = !document.fullscreenEnabled;
    document.addEventListener("fullscreenchange", () => this.filled());
    this.scale(kept("scale") === "log");
    this.offerIndicators(pane.querySelector("[data-part=indicators]"), pane.querySelector("#indicator-choice"));
  }

  /** What the legend says of the last candle: a picture has no crosshair to show that it is about another one. */
  phrases() {
    this.chart.chart.clearCrosshairPosition();
    // The library's own event comes later.
    this.chart.tell("pointed");
    return [...this.pane.querySelectorAll("[data-part=legend] > .phrase")].map(({ textContent }) => textContent);
  }

  tool(name) {
    return this.pane.querySelector(`[data-tool=${name}]`);
  }

  button(name, act) {
    this.tool(name).addEventListener("click", act);
  }

  scale(isLog) {
    this.isLog = isLog;
    keep("scale", isLog ? "log" : "linear");
    this.tool("log").setAttribute("aria-pressed", String(isLog));
    this.chart.chart.priceScale("right").applyOptions({ mode: isLog ? PriceScaleMode.Logarithmic : PriceScaleMode.Normal });
  }

  fill() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.pane.requestFullscreen();
  }

  filled() {
    this.tool("fullscreen").setAttribute("aria-pressed", String(document.fullscreenElement === this.pane));
  }

  offerIndicators(list, template) {
    const chosen = keptObject("indicators");
    for (const indicator of INDICATORS) {
      const row = template.content.cloneNode(true).firstElementChild;
      const name = row.querySelector("[data-part=name]");
      const box = row.querySelector("input[type=checkbox]");
      name.textContent = indicator.title;
      box.checked = Boolean(chosen[indicator.name]?.on);
      const fields = Object.keys(indicator.settings).map((setting) => field(indicator, setting, chosen[indicator.name]?.[setting]));
      const allowed = row.querySelector("[data-part=allowed]");
      allowed.before(...fields);
      row.addEventListener("change", ({ target }) => {
        write(allowed, restored(target));
        this.choose(indicator, box.checked, fields);
      });
      list.append(row);
      if (box.checked) this.studies.show(indicator, settingsOf(fields));
    }
    this.count();
  }

  choose(indicator, on, fields) {
    const settings = settingsOf(fields);
    // Another tab may have chosen others since.
    keep("indicators", JSON.stringify({ ...keptObject("indicators"), [indicator.name]: { on, ...settings } }));
    if (on) this.studies.show(indicator, settings);
    else this.studies.hide(indicator);
    this.count();
  }

  count() {
    const { size } = this.studies.shown;
    this.pane.querySelector("[data-part=count]").textContent = size || "";
  }
}

const settingsOf = (fields) => Object.fromEntries(fields.map(({ name, valueAsNumber }) => [name, valueAsNumber]));

function field({ title, settings, limits }, name, asked) {
  const input = document.createElement("input");
  Object.assign(input, { type: "number", name, ...LIMITS, ...limits?.[name], required: true });
  input.setAttribute("aria-label", `${title}: ${name}`);
  input.value = asked;
  if (!input.validity.valid) input.value = settings[name];
  input.defaultValue = input.value;
  return input;
}

/** Puts what was there before in the place of what makes no sense, and says what does. */
function restored(input) {
  if (input.type !== "number") return "";
  if (input.validity.valid) {
    input.defaultValue = input.value;
    return "";
  }
  input.value = input.defaultValue;
  return `Allowed: ${input.min} to ${input.max}${input.step === "1" ? ", whole numbers" : ""}`;
}
