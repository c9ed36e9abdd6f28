// The row above the chart: timeframes, indicators, scale, zone, picture and full screen.
import { keep, kept, keptObject } from "../../page/kept.js";
import { PriceScaleMode } from "../charts.js";
import { INDICATORS } from "../indicators/index.js";
import { closing } from "./menu.js";

const MOST_BARS = 500;

export class Toolbar {
  /** `facts` answers the name of the instrument that is shown. */
  constructor(pane, { chart, studies, zoned, facts }) {
    Object.assign(this, { pane, chart, studies, zoned, facts });
    for (const menu of pane.querySelectorAll("details.menu")) closing(menu);
    this.button("log", () => this.scale(!this.isLog));
    this.button("picture", async () => {
      const { savePicture } = await import("./picture.js");
      savePicture(this.chart, this.zoned, this.facts());
    });
    this.button("fullscreen", () => this.fill());
    this.tool("fullscreen").hidden = !document.fullscreenEnabled;
    document.addEventListener("fullscreenchange", () => this.filled());
    this.scale(kept("scale") === "log");
    this.offerIndicators(pane.querySelector("[data-part=indicators]"), pane.querySelector("#indicator-choice"));
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
    this.chosen = keptObject("indicators");
    for (const indicator of INDICATORS) {
      const row = template.content.cloneNode(true).firstElementChild;
      const name = row.querySelector("[data-part=name]");
      const box = row.querySelector("input[type=checkbox]");
      const settings = settingsOf(indicator, this.chosen[indicator.name]);
      name.textContent = indicator.title;
      box.checked = Boolean(this.chosen[indicator.name]?.on);
      const fields = Object.keys(indicator.settings).map((setting) => field(indicator, setting, settings[setting]));
      row.append(...fields);
      row.addEventListener("change", () => this.choose(indicator, box.checked, fields));
      list.append(row);
      if (box.checked) this.studies.show(indicator, settings);
    }
    this.count();
  }

  choose(indicator, on, fields) {
    const asked = Object.fromEntries(fields.map((each) => [each.name, each.valueAsNumber]));
    const settings = settingsOf(indicator, asked);
    for (const each of fields) each.value = settings[each.name];
    this.chosen[indicator.name] = { on, ...settings };
    keep("indicators", JSON.stringify(this.chosen));
    if (on) this.studies.show(indicator, settings);
    else this.studies.hide(indicator);
    this.count();
  }

  count() {
    const { size } = this.studies.shown;
    this.pane.querySelector("[data-part=count]").textContent = size || "";
  }
}

/** What was asked for, as far as it makes sense. */
function settingsOf({ settings }, asked = {}) {
  return Object.fromEntries(
    Object.entries(settings).map(([name, usual]) => {
      const value = Math.round(asked[name]);
      return [name, value >= 1 && value <= MOST_BARS ? value : usual];
    }),
  );
}

function field({ title }, name, value) {
  const input = document.createElement("input");
  Object.assign(input, { type: "number", name, value, min: 1, max: MOST_BARS, step: 1, required: true });
  input.setAttribute("aria-label", `${title}: ${name}`);
  return input;
}
