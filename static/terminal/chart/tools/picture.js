// The chart as a picture to keep, with what it shows and when written above it.
const HEAD_PX = 56;
const EDGE_PX = 16;

export async function savePicture(chart, zoned, { name }) {
  const drawn = chart.chart.takeScreenshot(true);
  const scale = drawn.width / chart.element.clientWidth;
  const canvas = document.createElement("canvas");
  canvas.width = drawn.width;
  canvas.height = drawn.height + HEAD_PX * scale;
  const pen = canvas.getContext("2d");
  pen.fillStyle = chart.tint.surface;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(drawn, 0, HEAD_PX * scale);
  pen.scale(scale, scale);
  const now = Date.now() / 1000;
  const taken = `${zoned.zone.moment(now)} ${zoned.zone.label(now)}`;
  write(pen, [EDGE_PX, 24], `${chart.symbol} · ${chart.timeframe}`, { weight: 600, size: 16, colour: chart.tint.text });
  write(pen, [EDGE_PX, 44], `${name} · ${taken}`, { weight: 400, size: 12, colour: chart.tint.soft });
  pen.textAlign = "right";
  write(pen, [drawn.width / scale - EDGE_PX, 24], "Tickwire", { weight: 600, size: 14, colour: chart.tint.accent });
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  offer(blob, `${chart.symbol}-${chart.timeframe}-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}Z.png`);
}

function write(pen, [x, y], text, { weight, size, colour }) {
  pen.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
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
