// The gain of a signal, in the unit of its market.
import { signed } from "../format.js";

/** `move` is the way in the right direction, in the price; `facts` are missing of what is not offered any more. */
export function gainText({ move, percent }, facts) {
  const unit = facts?.unit ?? "percent";
  if (unit === "percent") return `${signed(percent, 2)}%`;
  return unit === "pips" ? `${signed(move / facts.pipSize, 1)} pips` : `${signed(move, facts.digits)} points`;
}

/** Of a closed signal, by the service's own figures. */
export function closedGain({ direction, entry, close_price: close, pnl, pnl_percent: percent }, facts) {
  const move = facts ? pnl * facts.pipSize : direction === "buy" ? close - entry : entry - close;
  return gainText({ move, percent }, facts);
}

/** The worse of entry and fill; 0 is no fill of its own. */
export function paidFor({ direction, entry, fill = 0 }) {
  return direction === "buy" ? Math.max(entry, fill) : Math.min(entry, fill || entry);
}

/** Of an active one, were it closed at these prices. */
export function gainNow({ direction, entry, stop_loss: stop }, { bid, ask }, fill = 0) {
  const at = direction === "buy" ? bid : ask;
  const paid = paidFor({ direction, entry, fill });
  const move = direction === "buy" ? at - paid : paid - at;
  return { at, move, percent: (100 * move) / paid, risks: move / Math.abs(paid - stop) };
}
