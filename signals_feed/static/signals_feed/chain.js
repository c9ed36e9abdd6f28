// The chain of the ledger: each hash is the SHA-256 of the hash before it, followed by the payload.
export const START = { position: 0, hash: "0".repeat(64) };

export class Broken extends Error {
  constructor(position, why) {
    super(`Entry ${position.toLocaleString("en-GB")} ${why}`);
    this.position = position;
  }
}

async function sha256(text) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The last of the entries that follow `known`; throws where the first of them does not hold. */
export async function follow(known, entries) {
  const hashes = await Promise.all(entries.map(({ previous, payload }) => sha256(previous + payload)));
  let last = known;
  for (const [at, { position, previous, hash }] of entries.entries()) {
    if (position !== last.position + 1) throw new Broken(last.position + 1, `is missing: entry ${position} follows.`);
    if (previous !== last.hash) throw new Broken(position, `does not follow entry ${last.position}: it names another hash as the previous one.`);
    if (hash !== hashes[at]) throw new Broken(position, "was altered: its hash is not that of its payload.");
    last = { position, hash };
  }
  return last;
}
