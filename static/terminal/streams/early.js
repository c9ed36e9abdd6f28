// Starts the worker that holds the sockets before the page is laid out and its modules have come.
{
  const { worker, csrf, instruments } = JSON.parse(document.getElementById("terminal-config").textContent);
  // Where workers are not shared (Chrome on Android), the tab has its own.
  const made = new (globalThis.SharedWorker ?? Worker)(worker, { type: "module" });
  made.onerror = () => dispatchEvent(new Event("tickwire:unloaded"));
  // The browser reports no error for a request that is never answered.
  globalThis.streamsMissed = setTimeout(made.onerror, 20_000);
  // The port of a shared worker keeps messages until there is a listener; a worker does not.
  made.port?.postMessage({ say: "hello", csrf, symbols: Object.keys(instruments) });
  globalThis.streamsPort = made.port ?? made;
}
