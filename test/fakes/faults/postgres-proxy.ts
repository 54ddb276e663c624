/**
 * Proxy between a process and its PostgreSQL server. It reports each message, so that a test can kill the process at
 * that moment.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { createConnection, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** `sent`: before the server receives the message; `done`: after the server has answered. */
export type Moment = 'sent' | 'done';
export type Watcher = (sql: string, moment: Moment, connection: object) => Promise<void>;

export type PostgresProxy = {
  /** Address of the same database through the proxy. */
  urlOf(url: string): string;
  /** Sets a watcher. Each message waits until the watcher has resolved. */
  watch(watcher: Watcher): void;
  close(): Promise<void>;
};

const SOCKET = '.s.PGSQL.5432';

/** Starts a proxy for a server on a Unix socket in a folder, such as the tests' server. */
export async function startPostgresProxy(serverFolder: string): Promise<PostgresProxy> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-pg-'));
  const open = new Set<Socket>();
  let watcher: Watcher = async () => undefined;

  const server = createServer((client) => {
    const upstream = createConnection(join(serverFolder, SOCKET));
    const connection = {};
    let latest = '';
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => {
        open.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    relay(client, upstream, async (message) => {
      latest = message;
      await watcher(latest, 'sent', connection);
    });
    relay(upstream, client, () => watcher(latest, 'done', connection));
  });
  await new Promise<void>((resolve) => server.listen(join(folder, SOCKET), resolve));
  return {
    urlOf: (url) => url.replace(encodeURIComponent(serverFolder), () => encodeURIComponent(folder)),
    watch(given) {
      watcher = given;
    },
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function relay(from: Socket, to: Socket, look: (text: string) => Promise<void>): void {
  from.on('data', (chunk: Buffer) => {
    from.pause();
    void look(chunk.toString('latin1')).then(() => {
      to.write(chunk);
      from.resume();
    });
  });
}
