// node node_ws.cjs CLIENT_PORT TICK_PORT send|join: `ws`, a set of sockets for each symbol.
// send: as its manual has it; join: frames made once, all of one read joined by hand and written past `ws`.
const net = require('node:net');
const { Sender, WebSocketServer } = require('ws');

const [clientPort, tickPort] = process.argv.slice(2, 4).map(Number);
const publish = process.argv[4] === 'join' ? publishJoined : publishEach;
const hearers = new Map();

function subscribe(socket, message) {
  socket.symbols = JSON.parse(message).symbols;
  socket.due = [];
  for (const symbol of socket.symbols) {
    if (!hearers.has(symbol)) hearers.set(symbol, new Set());
    hearers.get(symbol).add(socket);
  }
}

function forget(socket) {
  for (const symbol of socket.symbols ?? []) hearers.get(symbol).delete(socket);
}

function hearersOf(tick) {
  return hearers.get(tick.latin1Slice(11, 17)) ?? [];
}

function publishEach(ticks) {
  for (const tick of ticks) for (const socket of hearersOf(tick)) socket.send(tick, { binary: false });
}

function publishJoined(ticks) {
  const touched = [];
  for (const tick of ticks) {
    const options = { fin: true, rsv1: false, opcode: 1, mask: false, readOnly: true };
    const frame = Buffer.concat(Sender.frame(tick, options));
    for (const socket of hearersOf(tick)) {
      if (!socket.due.length) touched.push(socket);
      socket.due.push(frame);
    }
  }
  for (const socket of touched) {
    socket._socket.write(socket.due.length === 1 ? socket.due[0] : Buffer.concat(socket.due));
    socket.due = [];
  }
}

const server = new WebSocketServer({ port: clientPort, host: '127.0.0.1', perMessageDeflate: false, backlog: 4096 });
server.on('connection', (socket) => {
  socket.on('message', (message) => subscribe(socket, message));
  socket.on('close', () => forget(socket));
  socket.on('error', () => {});
});

let rest = Buffer.alloc(0);
const tickServer = net.createServer((source) => {
  source.on('error', () => {});
  source.on('data', (data) => {
    rest = rest.length ? Buffer.concat([rest, data]) : data;
    const ticks = [];
    for (let end; (end = rest.indexOf(10)) >= 0; rest = rest.subarray(end + 1)) ticks.push(rest.subarray(0, end));
    publish(ticks);
  });
});
tickServer.listen(tickPort, '127.0.0.1');
