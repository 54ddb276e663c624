/** Terminals of nodes in one process, which send their input back. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type RawData, WebSocket, WebSocketServer } from 'ws';

/** Starts the terminals. The caller must call `close()`. */
export async function startEchoTerminals() {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  server.on('connection', (terminal) => {
    terminal.send(Buffer.from('$ '));
    // Input is binary; a text has a new size.
    terminal.on('message', (data: RawData, isBinary) => isBinary && terminal.send(data));
  });
  const { port } = server.address() as AddressInfo;
  return {
    /** Opens a terminal whose messages wait until the caller resumes it. */
    async open(): Promise<WebSocket> {
      const terminal = new WebSocket(`ws://127.0.0.1:${port}`);
      await once(terminal, 'open');
      terminal.pause();
      return terminal;
    },
    async close(): Promise<void> {
      for (const terminal of server.clients) terminal.terminate();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
