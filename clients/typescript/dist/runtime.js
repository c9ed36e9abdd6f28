const USER_AGENT = "tickwire-typescript/0.2.0-dev.0";
const node = globalThis.process?.versions?.node;
export const WITHOUT_SOCKET = (node ? `Node ${node} has no WebSocket of its own` : "There is no WebSocket here") +
    ": use Node 22 or newer, or pass the class of the package ws: new Tickwire({ WebSocket, … }).";
/** Browsers send their own, and to change it would cost a request to ask for permission. */
export function withUserAgent(headers) {
    return node ? { ...headers, "User-Agent": USER_AGENT } : headers;
}
/** Node's own WebSocket and that of the package ws take headers, which browsers do not. */
export function opened(Socket, url) {
    return node ? new Socket(url, { headers: withUserAgent({}) }) : new Socket(url);
}
