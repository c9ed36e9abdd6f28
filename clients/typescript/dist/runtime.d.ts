export declare const WITHOUT_SOCKET: string;
/** Browsers send their own, and to change it would cost a request to ask for permission. */
export declare function withUserAgent(headers: Record<string, string>): Record<string, string>;
/** Node's own WebSocket and that of the package ws take headers, which browsers do not. */
export declare function opened(Socket: typeof WebSocket, url: string): WebSocket;
