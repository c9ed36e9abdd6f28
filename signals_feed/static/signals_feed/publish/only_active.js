// The results of active signals, for somebody who may not publish any more and so has no form.
import { EVERY_MS, askLive, showResult } from "./active.js";

async function keepFresh() {
  try {
    if (!document.hidden) (await askLive()).signals.forEach(showResult);
  } catch {
    // The next answer says more.
  }
  setTimeout(keepFresh, EVERY_MS);
}

keepFresh();
