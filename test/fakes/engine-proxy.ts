/** Stands between an agent and the real Docker engine, and tells of every call before and after the engine has it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** `POST /containers/create`: method and path, version, ids, names and query left out. */
export type EngineCall = string;

export type EngineProxy = {
  socketPath: string;
  /** Awaited before a call is passed on and again before its answer is. */
  watch(hook: (call: EngineCall, moment: 'before' | 'after') => Promise<void> | void): void;
  close(): Promise<void>;
};

const ENGINE_SOCKET = '/var/run/docker.sock';

/** Listens on a socket in a folder of its own. */
export async function startEngineProxy(): Promise<EngineProxy> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-engine-'));
  const socketPath = join(folder, 'docker.sock');
  let hook: Parameters<EngineProxy['watch']>[0] = () => undefined;

  async function pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const call = callOf(incoming);
    await hook(call, 'before');
    const { method, url: path, headers } = incoming;
    const upstream = request({ socketPath: ENGINE_SOCKET, method, path, headers });
    upstream.on('response', async (answer) => {
      await hook(call, 'after');
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    upstream.on('error', () => outgoing.destroy());
    // A caller that is gone ends its streams, but never a change that the engine has begun.
    outgoing.on('close', () => {
      if (method === 'GET') upstream.destroy();
    });
    incoming.pipe(upstream);
  }

  const server = createServer((incoming, outgoing) => {
    pass(incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(socketPath, () => resolve()));
  return {
    socketPath,
    watch(next) {
      hook = next;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function callOf({ method, url = '' }: IncomingMessage): EngineCall {
  const path = (url.split('?', 1)[0] ?? '').replace(/^\/v[\d.]+/, '');
  return `${method} ${path.replace(/^\/(containers|networks|images)\/(?!create|json)[^/]+/, '/$1/{id}')}`;
}
