/** Proxy between an agent and the real Docker engine. It reports every call before and after the engine handles it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

/** `POST /containers/create`: method and path, without API version, ids, names and query. */
export type EngineCall = string;

/**
 * Subject of a call: its path with ids, and the body of a create. The hook receives the same object before and after
 * the call.
 */
export type CallSubject = { url: string; text: string };

/**
 * `drop` closes the connection. Before the call: the engine never receives it. After: the caller never receives the
 * answer.
 */
type Verdict = 'drop' | undefined;
type Hook = (
  call: EngineCall,
  moment: 'before' | 'after',
  subject: CallSubject,
) => Promise<Verdict> | Promise<void> | Verdict | void;

export type EngineProxy = {
  socketPath: string;
  /** Sets a hook that the proxy awaits before it forwards a call, and again before it forwards the answer. */
  watch(hook: Hook): void;
  close(): Promise<void>;
};

const ENGINE_SOCKET = '/var/run/docker.sock';
/** Calls whose body contains the pod's id. The proxy buffers the body until it is complete. */
const NAMED_IN_BODY = /^POST \/(containers|networks|volumes)\/create$/;

/** Listens on a socket in a temporary folder, in front of the machine's engine or another engine. */
export async function startEngineProxy(engineSocket = ENGINE_SOCKET): Promise<EngineProxy> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-engine-'));
  const socketPath = join(folder, 'docker.sock');
  let hook: Hook = () => undefined;

  async function pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const call = callOf(incoming);
    const body = NAMED_IN_BODY.test(call) ? await text(incoming) : null;
    const subject: CallSubject = { url: incoming.url ?? '', text: body ?? '' };
    if ((await hook(call, 'before', subject)) === 'drop') return void outgoing.destroy();
    const { method, url: path, headers } = incoming;
    const upstream = request({ socketPath: engineSocket, method, path, headers });
    upstream.on('response', async (answer) => {
      const verdict = await hook(call, 'after', subject);
      // If the engine is killed, answers in flight end with an error.
      answer.on('error', () => outgoing.destroy());
      if (verdict === 'drop') return void outgoing.destroy();
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      outgoing.flushHeaders();
      answer.pipe(outgoing);
    });
    upstream.on('error', () => outgoing.destroy());
    // When a caller disconnects, the proxy ends its streams, but not a change that the engine has begun.
    outgoing.on('close', () => {
      if (method === 'GET') upstream.destroy();
    });
    if (body === null) incoming.pipe(upstream);
    else upstream.end(body);
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
  return `${method} ${path.replace(/^\/(containers|networks|images|volumes)\/(?!create|json)[^/]+/, '/$1/{id}')}`;
}
