// A socket by hand: what is sent, what comes, how it ends.
import { Token } from "../terminal/streams/token.js";

const KEPT = 200;
const part = (name) => document.getElementById(`console-${name}`);
const { csrf, hasPageKey } = JSON.parse(part("config").textContent);
const token = new Token(csrf);
let socket;

async function key() {
  return part("key").value.trim() || (hasPageKey ? token.get() : "");
}

function connect() {
  socket?.close();
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const opened = (socket = new WebSocket(`${scheme}://${location.host}${part("path").value}`));
  state("Connecting…");
  opened.onopen = () => state("Connected. A subscribe with a key is expected within 10 seconds.", true);
  opened.onmessage = ({ data }) => hear(data);
  opened.onclose = ({ code, reason }) => {
    show(`closed with ${code}${reason && `: ${reason}`}`, "closed");
    if (opened === socket) state(`Closed with ${code}.`);
  };
}

function hear(text) {
  show(text, text.startsWith('{"type":"error"') ? "error" : "received");
  if (text.startsWith('{"type":"subscribed"')) state("Subscribed.", true);
}

async function send() {
  const text = part("message").value;
  try {
    // What is shown keeps the word, so that a picture of this page gives no key away.
    socket.send(text.includes("KEY") ? text.replace("KEY", await key()) : text);
    show(text, "sent");
  } catch (error) {
    show(error.message, "error");
  }
}

function show(text, kind) {
  const item = document.createElement("li");
  item.className = kind;
  const arrow = { sent: "→", received: "←", error: "←", closed: "×" }[kind];
  // A line breaks after a comma, and not within a number.
  const parts = `${arrow} ${text}`.split(/(?<=,)/).flatMap((part) => [part, document.createElement("wbr")]);
  item.append(...parts.slice(0, -1));
  const frames = part("frames");
  frames.prepend(item);
  if (frames.children.length > KEPT) frames.lastChild.remove();
}

function state(text, isOpen = false) {
  part("state").textContent = text;
  part("send").disabled = part("close").disabled = !isOpen;
}

part("connect").addEventListener("click", connect);
part("close").addEventListener("click", () => socket.close(1000));
part("send").addEventListener("click", send);
for (const button of document.querySelectorAll("[data-example]")) {
  button.addEventListener("click", () => (part("message").value = button.dataset.example));
}
