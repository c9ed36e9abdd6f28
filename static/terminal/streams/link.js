// A tab's line to the worker that holds the sockets.

export class Link {
  #port = globalThis.streamsPort;
  #tokens = [];

  constructor(hello, { frames, streamReport, restored }) {
    this.hello = hello;
    this.#port.onmessage = ({ data }) => {
      clearTimeout(globalThis.streamsMissed);
      if (data.say === "frames") frames(data.frames);
      else if (data.say === "streamReport") streamReport(data);
      else for (const take of this.#tokens.splice(0)) take(data);
    };
    this.#say("hello", hello);
    addEventListener("pagehide", () => this.#say("bye"));
    addEventListener("pageshow", ({ persisted }) => {
      if (!persisted) return;
      this.#say("hello", this.hello);
      restored();
    });
  }

  watchFlow(symbol) {
    this.hello.flow = symbol;
    this.#say("flow", { flow: symbol });
  }

  async token() {
    const answer = await new Promise((take) => {
      this.#tokens.push(take);
      this.#say("token");
    });
    if (answer.error) throw Object.assign(new Error(answer.error), { retryAfterS: answer.retryAfterS });
    return answer.token;
  }

  forgetToken() {
    this.#say("stale");
  }

  #say(say, more = {}) {
    this.#port.postMessage({ say, ...more });
  }
}
