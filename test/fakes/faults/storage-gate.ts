/**
 * Proxy between restic and the storage of its repositories. It reports every request before and after the storage
 * handles it.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

/** `POST data`: method and object type, without the repository's id and the object's name. */
export type StorageCall = string;
export type Moment = 'before' | 'after';
/**
 * Hook that the gate awaits before it forwards a request, and again before it forwards the answer. A rejection closes
 * the connection. `nth` counts the calls of this kind since the hook was set, from 1.
 */
export type StorageHook = (call: StorageCall, moment: Moment, nth: number) => Promise<void> | void;

export type StorageGate = {
  /** Origin as in RESTIC_REPOSITORY, without the repository's id. */
  origin: string;
  watch(hook: StorageHook): void;
  /** Limits the rate in bytes per second in each direction; 0 removes the limit. */
  throttle(bytesPerSecond: number): void;
  close(): Promise<void>;
};

const SLICES_PER_SECOND = 20;

/** Listens. Forwards each request to the storage at the port that `target` returns. */
export async function startStorageGate(target: () => number): Promise<StorageGate> {
  let hook: StorageHook = () => undefined;
  let rate = 0;
  let counts = new Map<StorageCall, number>();

  /**
   * Yields the content at the limited rate. If the connection to the storage breaks, restic's connection breaks too.
   */
  async function* slowed(content: AsyncIterable<Buffer>) {
    for await (const chunk of content) {
      if (rate === 0) {
        yield chunk;
        continue;
      }
      const bytes = Math.ceil(rate / SLICES_PER_SECOND);
      for (let at = 0; at < chunk.length; at += bytes) {
        await wait(1_000 / SLICES_PER_SECOND);
        yield chunk.subarray(at, at + bytes);
      }
    }
  }

  async function pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const call = callOf(incoming);
    const nth = (counts.get(call) ?? 0) + 1;
    counts.set(call, nth);
    await hook(call, 'before', nth);
    const { method, url: path, headers } = incoming;
    const upstream = request({
      host: '127.0.0.1',
      port: target(),
      method,
      path,
      headers,
      // Opens a new connection for each request: a pooled one may belong to a storage that was killed.
      agent: false,
    });
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      upstream.on('response', resolve);
      upstream.on('error', reject);
    });
    const sent = (async () => {
      for await (const chunk of slowed(incoming)) {
        if (!upstream.write(chunk)) await new Promise((resolve) => upstream.once('drain', resolve));
      }
      upstream.end();
    })();
    sent.catch(() => upstream.destroy());
    const answer = await answered;
    await hook(call, 'after', nth);
    outgoing.writeHead(answer.statusCode ?? 502, answer.statusMessage, answer.headers);
    for await (const chunk of slowed(answer)) {
      if (outgoing.destroyed) return;
      outgoing.write(chunk);
    }
    outgoing.end();
  }

  const server = createServer((incoming, outgoing) => {
    incoming.on('error', () => outgoing.destroy());
    pass(incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  return {
    origin: `rest:http://127.0.0.1:${(server.address() as AddressInfo).port}/restic/`,
    watch(next) {
      hook = next;
      counts = new Map();
    },
    throttle(bytesPerSecond) {
      rate = bytesPerSecond;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function callOf({ method, url = '' }: IncomingMessage): StorageCall {
  const [, type = 'repository'] = /^\/restic\/[^/]+\/([a-z]+)/.exec(url) ?? [];
  return `${method} ${type}`;
}
