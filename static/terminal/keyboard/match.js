// How well a few letters name an instrument: by its symbol or by its name, also with letters left out.

/** The instruments that are meant, the likeliest first, each with the letters that were typed. */
export function matches(query, instruments) {
  const wanted = query.trim().toLowerCase();
  if (!wanted) return instruments.map((instrument) => ({ instrument, inSymbol: [], inName: [] }));
  return instruments
    .map((instrument) => ({ instrument, ...match(wanted, instrument) }))
    .filter(({ cost }) => cost < Infinity)
    .sort((one, other) => one.cost - other.cost || (one.instrument.symbol < other.instrument.symbol ? -1 : 1));
}

function match(wanted, { symbol, name }) {
  const bySymbol = find(wanted, symbol.toLowerCase());
  const byName = find(wanted, name.toLowerCase());
  // The symbol is what people type: a name counts only where it fits clearly better.
  if (bySymbol.cost <= byName.cost + 5) return { cost: bySymbol.cost, inSymbol: bySymbol.at, inName: [] };
  return { cost: byName.cost + 5, inSymbol: [], inName: byName.at };
}

function find(wanted, text) {
  const run = (from) => Array.from(wanted, (_, at) => from + at);
  if (text.startsWith(wanted)) return { cost: text.length - wanted.length > 0 ? 1 : 0, at: run(0) };
  const word = text.search(new RegExp(`(?<![\\p{L}\\p{N}])${wanted.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")}`, "u"));
  if (word >= 0) return { cost: 2, at: run(word) };
  const within = text.indexOf(wanted);
  return within >= 0 ? { cost: 8 + within / 100, at: run(within) } : scattered(wanted, text);
}

/** In their order, with others between: the fewer, the better. */
function scattered(wanted, text) {
  const at = [];
  for (const letter of wanted) {
    const next = text.indexOf(letter, (at.at(-1) ?? -1) + 1);
    if (next < 0) return { cost: Infinity, at: [] };
    at.push(next);
  }
  const skipped = at.at(-1) - at[0] + 1 - at.length;
  return skipped > 2 * wanted.length + 2 ? { cost: Infinity, at: [] } : { cost: 20 + skipped, at };
}
