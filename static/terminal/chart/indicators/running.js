// Computes an indicator along the bars, and again only where they have changed.
export class Running {
  /** `indicator` is pure: `begin()`, and `next(state, bars, at, settings)` answers what follows and the values there;
   * `reach(settings, seconds)` says how many bars of that length it takes before a value. */
  constructor(indicator, settings) {
    Object.assign(this, { indicator, settings, states: [], values: [] });
  }

  /** The values of all bars. Those before `from` have not changed since. */
  along(bars, from = 0) {
    const { indicator, settings, states, values } = this;
    const begins = Math.min(from, values.length);
    states.length = values.length = begins;
    let state = begins ? states[begins - 1] : indicator.begin(settings);
    for (let at = begins; at < bars.length; at += 1) {
      [state, values[at]] = indicator.next(state, bars, at, settings);
      states[at] = state;
    }
    return values;
  }
}
