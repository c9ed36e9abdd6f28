// The chart as a picture to keep, with what it shows and when written above it.
import { PriceScaleMode } from "../charts.js";

const HEAD_PX = 56;
const LINE_PX = 18;
const EDGE_PX = 16;
const BETWEEN_PX = 16;
const SMALL = { weight: 500, size: 12 };

/** `phrases` are those of the legend, `studies` the indicators that are drawn. */
export async function savePicture(chart, zoned, { name, phrases, studies }) {
  const drawn = chart.chart.takeScreenshot(true);
  const scale = drawn.width / chart.element.clientWidth;
  const width = drawn.width / scale;
  const canvas = document.createElement("canvas");
  const pen = canvas.getContext("2d");
  const inColour = (titles, mainColour) => titles.map((title) => ({ title, mainColour }));
  const rows = [inColour(circumstances(chart), chart.tint.soft), inColour(phrases, chart.tint.text), studies];
  const named = lined(pen, rows, width - 2 * EDGE_PX);
  const head = HEAD_PX + LINE_PX * (named.at(-1)?.line ?? 0);
  canvas.width = drawn.width;
  canvas.height = drawn.height + head * scale;
  pen.fillStyle = chart.tint.surface;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(drawn, 0, head * scale);
  pen.scale(scale, scale);
  const now = Date.now() / 1000;
  const taken = `${zoned.zone.moment(now)} ${zoned.zone.label(now)}`;
  write(pen, [EDGE_PX, 24], `${chart.symbol} · ${chart.timeframe}`, { weight: 600, size: 16, colour: chart.tint.text });
  write(pen, [EDGE_PX, 44], `${name} · ${taken}`, { weight: 400, size: 12, colour: chart.tint.soft });
  for (const { title, colour, line, x } of named) write(pen, [EDGE_PX + x, 44 + LINE_PX * line], title, { ...SMALL, colour });
  pen.textAlign = "right";
  write(pen, [width - EDGE_PX, 24], "Tickwire", { weight: 600, size: 14, colour: chart.tint.accent });
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  offer(blob, `${chart.symbol}-${chart.timeframe}-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}Z.png`);
}

/** Facts that the picture itself does not show. */
function circumstances({ chart, element }) {
  const pane = element.closest(".pane");
  return [
    "demo" in pane.dataset && "Demo: a made-up market",
    chart.priceScale("right").options().mode === PriceScaleMode.Logarithmic && "Logarithmic scale",
    pane.querySelector(".trading").textContent,
  ].filter(Boolean);
}

/** Circumstances and figures, and below them the names of indicators, each in as many lines as they take. */
function lined(pen, rows, width) {
  pen.font = fontOf(SMALL);
  let line = 0;
  return rows.flatMap((phrases) => {
    let x = Infinity;
    return phrases.map(({ title, mainColour: colour }) => {
      const taken = pen.measureText(title).width;
      if (x + taken > width) [line, x] = [line + 1, 0];
      const place = { title, colour, line, x };
      x += taken + BETWEEN_PX;
      return place;
    });
  });
}

const fontOf = ({ weight, size }) => `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;

function write(pen, [x, y], text, { weight, size, colour }) {
  pen.font = fontOf({ weight, size });
  pen.fillStyle = colour;
  pen.fillText(text, x, y);
}

function offer(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The download has begun by then, and a picture is large.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
