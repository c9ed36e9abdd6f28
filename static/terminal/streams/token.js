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

  /** A page of another login has another one. */
  useCsrf(csrf) {
    this.#csrf = csrf;
  }

  async #ask() {
    const csrf = this.#csrf;
    const answer = await fetch("/page-token", {
      method: "POST",
      headers: { "X-CSRFToken": csrf },
      signal: AbortSignal.timeout(10_000),
    });
    // A page of another login came in between: the refusal was for the previous one.
    if (!answer.ok && csrf !== this.#csrf) return this.#ask();
    if (!answer.ok) throw new Refused(answer.status, await sentence(answer), Number(answer.headers.get("Retry-After")));
    const { token, expires_at } = await answer.json();
    this.#token = token;
    this.#expiresAt = Date.parse(expires_at);
    return token;
  }
}

async function sentence(answer) {
  if (answer.status === 403) return "Your session has ended. Reload the page.";
  const { error } = await answer.json().catch(() => ({}));
  return error?.message ?? "The service did not give this page a token.";
}

export class Refused extends Error {
  constructor(status, message, retryAfterS) {
    super(message);
    this.status = status;
    this.retryAfterS = retryAfterS;
  }
}
