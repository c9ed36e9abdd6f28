// The public REST interface, with the page's token as the key.
export class Api {
  #link;
  #answered;

  /** `answered` is called with the outcome of each request. */
  constructor(link, answered = () => {}) {
    this.#link = link;
    this.#answered = answered;
  }

  async get(path, parameters = {}) {
    try {
      const body = await this.#get(path, parameters);
      this.#answered(path, null);
      return body;
    } catch (error) {
      this.#answered(path, error);
      throw error;
    }
  }

  async #get(path, parameters) {
    let answer = await this.#ask(path, parameters);
    if (answer.status === 401) {
      this.#link.forgetToken();
      answer = await this.#ask(path, parameters);
    }
    const body = await answer.json();
    if (!answer.ok) throw new Failure(body.error, Number(answer.headers.get("Retry-After")));
    return body;
  }

  async #ask(path, parameters) {
    const query = new URLSearchParams(parameters);
    const headers = { "X-API-Key": await this.#link.token() };
    return fetch(`/api/${path}?${query}`, { headers, signal: AbortSignal.timeout(15_000) });
  }
}

export class Failure extends Error {
  constructor({ code, message }, retryAfterS) {
    super(message);
    this.code = code;
    this.retryAfterS = retryAfterS;
  }
}

const pausing = new Set();

/** The service is back: waiting requests are tried again now. */
export function hurry() {
  for (const end of pausing) end();
}

const again = {};

/** Imports a module despite outages. Some browsers never retry an address that failed once. */
export async function module(address) {
  try {
    return await import(address + (again[address] ?? ""));
  } catch (error) {
    again[address] = `?${performance.now()}`;
    throw error;
  }
}

/** Try until it works, slower each time, as long as it is wanted. */
export async function persist(attempt, isWanted) {
  for (let pauseMs = 500; isWanted(); pauseMs = Math.min(2 * pauseMs, 30_000)) {
    try {
      return await attempt();
    } catch (error) {
      console.warn(error.message);
      await pause(pauseMs, error.retryAfterS);
    }
  }
  return undefined;
}

/** Respects a pause that the service asked for. */
async function pause(ms, askedS) {
  let end;
  const ended = new Promise((done) => (end = done));
  setTimeout(end, Math.max(ms, 1000 * (askedS || 0)));
  if (!askedS) pausing.add(end);
  await ended;
  pausing.delete(end);
}
