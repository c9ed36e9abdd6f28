// The results of active signals, for somebody who may not publish any more and so has no form.
import { EVERY_MS, askLive, showResults } from "./active.js";

async function keepFresh() {
  try {
    if (!document.hidden) showResults((await askLive()).signals);
  } catch {
    // The next answer says more.
  }
  setTimeout(keepFresh, EVERY_MS);
}

keepFresh();
