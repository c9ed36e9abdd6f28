// Drives a stream of the terminal page outside of a browser.
import { pathToFileURL } from "node:url";

const [module, url, path, ...symbols] = process.argv.slice(2);
globalThis.location = new URL(url);
const { Stream } = await import(pathToFileURL(module));
const stream = new Stream(path, { get: async () => "pt_any", forget() {} }, { hear() {}, tell() {} });
stream.want(symbols);
