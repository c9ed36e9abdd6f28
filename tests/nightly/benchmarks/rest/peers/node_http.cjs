// node node_http.cjs PORT: what ours sent, with the key's window and our headers.
const { readFileSync } = require('node:fs');
const { randomUUID } = require('node:crypto');
const { createServer } = require('node:http');
const { join } = require('node:path');

const LIMIT = 1_000_000_000;
const WINDOW_MS = 60_000;
const LET_GO_AT = 100_000;
const TIER = 'boundless';
const COUNTED = ['x-request-id', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'ratelimit'];
const FRAMING = ['date', 'content-length', 'connection'];

class Window {
  times = [];
  first = 0;

  admit() {
    const now = Date.now();
    this.times.push(now);
    while (this.times[this.first] <= now - WINDOW_MS) this.first += 1;
    if (this.first > LET_GO_AT) {
      this.times.splice(0, this.first);
      this.first = 0;
    }
    return now;
  }

  get used() {
    return this.times.length - this.first;
  }

  get oldest() {
    return this.times[this.first];
  }
}

const windows = new Map([[process.env.BENCH_KEY, new Window()]]);

function recorded(name) {
  const file = join(process.env.BENCH_ANSWERS, name);
  const sent = JSON.parse(readFileSync(`${file}.headers.json`, 'utf8'));
  const body = readFileSync(`${file}.json`);
  const fixed = sent.filter(([header]) => !COUNTED.includes(header) && !FRAMING.includes(header)).flat();
  return { body, fixed: [...fixed, 'content-length', body.length] };
}

const quote = recorded('quote');
const bars = recorded('500 bars');

function answer(request, response) {
  const window = windows.get(request.headers['x-api-key']);
  if (window === undefined) {
    response.writeHead(401).end();
    return;
  }
  const now = window.admit();
  const left = LIMIT - window.used;
  const reset = window.oldest + WINDOW_MS;
  const wait = Math.ceil((reset - now) / 1000);
  const { body, fixed } = request.url.includes('/quote') ? quote : bars;
  response.writeHead(200, [
    ...fixed,
    'x-request-id', `req_${randomUUID()}`,
    'x-ratelimit-remaining', left,
    'x-ratelimit-reset', Math.ceil(reset / 1000),
    'ratelimit', `"${TIER}";r=${left};t=${wait}`,
  ]);
  response.end(body);
}

createServer(answer).listen(Number(process.argv[2]), '127.0.0.1');
