// One socket of the npm package `ws`, driven by lines: what comes on standard input is sent as it stands, and
// what happens is told on standard output, one JSON object a line.
import { createInterface } from "node:readline";
import WebSocket from "ws";

const [url, key] = process.argv.slice(2);
const socket = new WebSocket(url, { headers: key ? { "X-API-Key": key } : {} });
const tell = (what) => console.log(JSON.stringify(what));

socket.on("open", () => tell({ open: socket.extensions }));
socket.on("message", (data, isBinary) => tell({ heard: data.toString(), isBinary }));
socket.on("ping", () => tell({ ping: true }));
socket.on("close", (code, reason) => {
  tell({ closed: [code, reason.toString()] });
  process.exit(0);
});
socket.on("error", (error) => tell({ fault: error.message }));

createInterface({ input: process.stdin })
  .on("line", (line) => socket.send(line))
  .on("close", () => socket.close());
