// The page's own key: short-lived, and renewed before it ends.
const EARLY_MS = 30_000;

export class Token {
  #csrf;
  #token = "";
  #expiresAt = 0;
  #asked = null;

  constructor(csrf) {
    this.#csrf = csrf;
  }

  async get() {
    if (Date.now() < this.#expiresAt - EARLY_MS) return this.#token;
    this.#asked ??= this.#ask().finally(() => (this.#asked = null));
    return this.#asked;
  }

  forget() {
    this.#expiresAt = 0;
  }

  async #ask() {
    const answer = await fetch("/page-token", {
      method: "POST",
      headers: { "X-CSRFToken": this.#csrf },
      signal: AbortSignal.timeout(10_000),
    });
    if (!answer.ok) throw new Refused(answer.status);
    const { token, expires_at } = await answer.json();
    this.#token = token;
    this.#expiresAt = Date.parse(expires_at);
    return token;
  }
}

export class Refused extends Error {
  constructor(status) {
    super(status === 403 ? "Your session has ended. Reload the page." : "The service refused this page a token.");
    this.status = status;
  }
}
