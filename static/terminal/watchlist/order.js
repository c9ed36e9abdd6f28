// Which rows are shown, in which order and under which headings.
export const SORTS = ["group", "name", "-name", "-change", "change"];

const STATES = ["open", "stale", "closed"];
const GROUPS = ["Forex", "Metals", "Commodities", "Crypto", "Indices", "Stocks"];
const byName = (one, other) => (one.symbol < other.symbol ? -1 : 1);
const byState = (one, other) => STATES.indexOf(one.state) - STATES.indexOf(other.state);
// Rows without a change come last in either direction.
const byChange = (sign) => (one, other) => sign * ((one.change ?? sign * Infinity) - (other.change ?? sign * Infinity)) || byName(one, other);
const WITHIN = { group: byName, name: byName, "-name": (one, other) => byName(other, one), change: byChange(1), "-change": byChange(-1) };

/** Favourites first, then what trades: by type, or all that is open before all that is closed. */
export function sections(rows, { sort, favourites, query = "" }) {
  const wanted = query.trim().toLowerCase();
  const isWanted = ({ symbol, name }) => `${symbol} ${name}`.toLowerCase().includes(wanted);
  const found = new Map();
  const order = (one, other) => byState(one, other) || WITHIN[sort](one, other);
  for (const row of rows.filter(isWanted).sort(order)) {
    const title = favourites.has(row.symbol) ? "Favourites" : titleOf(row, sort);
    if (!found.has(title)) found.set(title, []);
    found.get(title).push(row);
  }
  const rank = (title) => (title === "Favourites" ? -1 : found.get(title)[0].state === "closed" ? 1 : 0);
  const titles = [...found.keys()].sort((one, other) => rank(one) - rank(other) || placeOf(one) - placeOf(other));
  return titles.map((title) => ({ title, rows: found.get(title) }));
}

const titleOf = ({ group, state }, sort) => (sort === "group" ? group : state === "closed" ? "Closed" : "Trading");
const placeOf = (title) => (GROUPS.includes(title) ? GROUPS.indexOf(title) : GROUPS.length);
