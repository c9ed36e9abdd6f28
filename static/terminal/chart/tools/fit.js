// Fits a chart out with everything that is operated around it; answers the menu of zones.
import { Legend } from "../legend.js";
import { Live } from "../live.js";
import { Placeholder } from "../placeholder.js";
import { Studies } from "../studies.js";
import { Title } from "../title.js";
import { Zoned } from "../zone.js";
import { Toolbar } from "./toolbar.js";
import { Zones } from "./zones.js";

// Bars that are kept ready on the left.
const AHEAD = 100;

/** `facts` answers the name and the zone of the instrument that is shown. */
export function fit(chart, pane, facts) {
  const part = (name) => pane.querySelector(`[data-part=${name}]`);
  const zoned = chart.add(new Zoned(chart));
  chart.add(new Live(chart, pane.querySelector("[data-tool=live]")));
  const studies = chart.add(new Studies(chart, { over: part("over"), below: part("below"), row: pane.querySelector("#study") }));
  chart.add(new Placeholder(chart, part("placeholder")));
  chart.add(new Legend(chart, part("legend")));
  loadOlder(chart, part("older"));
  chart.add(new Title(chart));
  new Toolbar(pane, { chart, studies, zoned, facts });
  return new Zones(pane.querySelector("[data-tool=zone]"), zoned, { exchange: () => facts().zone });
}

/** What brings in older candles is fetched when the first of those that are there comes near. */
function loadOlder(chart, strip) {
  const scale = chart.chart.timeScale();
  let isFetched = false;
  const look = async () => {
    const { from, to } = scale.getVisibleLogicalRange() ?? {};
    if (isFetched || !chart.bars.length || !(from < Math.max(AHEAD, to - from, chart.reach))) return;
    isFetched = true;
    const { Older } = await import("../older.js");
    chart.add(new Older(chart, strip)).replaced();
  };
  scale.subscribeVisibleLogicalRangeChange(look);
  chart.add({ replaced: look, reached: look });
}
