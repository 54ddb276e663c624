/** The SSH server of one pod: listens on its port with its host key and accepts its authorized keys. */

import { createServer, type Server as NetServer, type Socket } from 'node:net';
import ssh2, { type AuthContext, type Connection } from 'ssh2';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { StartPace } from '../access/exec/start-pace.ts';
import type { GatewayPod } from '../access/ssh/gateway-files.ts';
import type { ExecEngine } from '../containers/engine/exec.ts';
import type { FailureLimit } from '../identity/auth.ts';
import {
  type AuthorizedKey,
  hasSigned,
  offeredKey,
  parseAuthorizedKeys,
} from './authorized-keys.ts';
import { serveConnection } from './connection.ts';
import type { Bounds, ConcurrencyLimits } from './limits.ts';

export type SshListenerPorts = {
  engine: ExecEngine;
  pace: StartPace;
  clock: Clock;
  log: Log;
  track(work: Promise<unknown>): void;
  /** Address to listen on. */
  host: string;
  limit: FailureLimit;
  limits: ConcurrencyLimits;
  bounds: Bounds;
  /** Key of the gateway's login probe; accepted only from this host. */
  probeKey: AuthorizedKey;
};

/** A connection that has not logged in. `loginEnded` aborts when the login succeeds or the socket closes. */
type PendingConnection = { socket: Socket; loginEnded: AbortController };

export type SshListener = ReturnType<typeof createSshListener>;

export const LOGIN_TIMEOUT_MS = 30_000;
const KEEPALIVE_INTERVAL_MS = 30_000;
const KEEPALIVE_MISSES = 4;
/** Ciphers that Node implements natively. Most clients prefer chacha20-poly1305, which would be slow in JavaScript. */
const CIPHERS = [
  'aes128-gcm@openssh.com',
  'aes256-gcm@openssh.com',
  'aes128-ctr',
  'aes192-ctr',
  'aes256-ctr',
] as const;
const MACS = [
  'hmac-sha2-256-etm@openssh.com',
  'hmac-sha2-512-etm@openssh.com',
  'hmac-sha2-256',
  'hmac-sha2-512',
] as const;
const IDENT = 'Podwright';

/** Call `listen` first, then `update` with every change of the pod. */
export function createSshListener(ports: SshListenerPorts, first: GatewayPod) {
  const log = ports.log.child({ pod_id: first.id });
  let pod = first;
  let keys = parseAuthorizedKeys(first.authorized_keys);
  const clients = new Map<Socket, AuthorizedKey>();
  const sockets = new Map<string, PendingConnection>();

  const protocol = new ssh2.Server({
    hostKeys: [first.host_key],
    ident: IDENT,
    algorithms: { cipher: [...CIPHERS], hmac: [...MACS], compress: ['none'] },
    keepaliveInterval: KEEPALIVE_INTERVAL_MS,
    keepaliveCountMax: KEEPALIVE_MISSES,
  });
  const listener: NetServer = createServer({ noDelay: true }, receive);

  function receive(socket: Socket): void {
    const address = socket.remoteAddress ?? '';
    const name = nameOf(address, socket.remotePort);
    const loginEnded = new AbortController();
    const remove = ports.limits.pending.add({
      podId: pod.id,
      address,
      isFailing: !ports.limit.allows(address),
      close: () => socket.destroy(),
    });
    loginEnded.signal.addEventListener('abort', remove);
    sockets.set(name, { socket, loginEnded });
    socket.once('close', () => {
      sockets.delete(name);
      loginEnded.abort();
    });
    ports.clock.sleep(LOGIN_TIMEOUT_MS, loginEnded.signal).then(
      () => socket.destroy(),
      () => undefined,
    );
    protocol.injectSocket(socket);
  }

  protocol.on('connection', (client, { ip, port }) => {
    // A protocol error of the client; the connection closes next.
    client.on('error', (error) => log.debug({ detail: error.message }, 'connection failed'));
    const pending = sockets.get(nameOf(ip, port));
    if (pending === undefined) client.end();
    else void admit(client, pending);
  });

  async function admit(
    client: Connection,
    { socket, loginEnded }: PendingConnection,
  ): Promise<void> {
    const address = socket.remoteAddress ?? '';
    const isOwn = address === socket.localAddress;
    const key = await logIn(client, {
      keys: () => (isOwn ? [...keys, ports.probeKey] : keys),
      failed: () => ports.limit.failed(address),
    });
    if (key === null) return;
    loginEnded.abort();
    // The key may have been removed since the client signed.
    if (!isAuthorized(key)) return void socket.destroy();
    clients.set(socket, key);
    socket.once('close', () => clients.delete(socket));
    const isProbe = key === ports.probeKey;
    serveConnection({ ...ports, log }, client, { socket, key, isProbe, pod: () => pod });
  }

  function isAuthorized(key: AuthorizedKey): boolean {
    return key === ports.probeKey || keys.some(({ blob }) => blob.equals(key.blob));
  }

  return {
    port: first.port,
    /** Rejects if the port is not available. */
    listen: () =>
      new Promise<void>((resolve, reject) => {
        listener.once('error', reject);
        listener.listen({ host: ports.host, port: first.port }, () => {
          listener.off('error', reject);
          listener.on('error', (error) => log.warn({ detail: error.message }, 'listener failed'));
          resolve();
        });
      }),
    pod: () => pod,
    /** Ends the sessions of removed keys. */
    update(next: GatewayPod): void {
      pod = next;
      keys = parseAuthorizedKeys(next.authorized_keys);
      for (const [socket, key] of clients) if (!isAuthorized(key)) socket.destroy();
    },
    /** Closes the listener and every connection. */
    close(): void {
      listener.close();
      for (const { socket } of sockets.values()) socket.destroy();
    },
  };
}

function nameOf(address: string, port: number | undefined): string {
  return `${address} ${port}`;
}

export const MAX_LOGIN_ATTEMPTS = 6;

export type LoginPorts = {
  /** Returns the pod's current keys. */
  keys(): readonly AuthorizedKey[];
  /** Called for each failed attempt. */
  failed(): void;
};

/** Authenticates by public key only. Resolves with the proven key, or null after too many attempts or a disconnect. */
export function logIn(client: Connection, ports: LoginPorts): Promise<AuthorizedKey | null> {
  let attempts = 0;
  let proven: AuthorizedKey | null = null;

  function decide(context: AuthContext): void {
    // Clients send it first to learn the supported methods.
    if (context.method === 'none') {
      context.reject(['publickey']);
      return;
    }
    const key = context.method === 'publickey' ? offeredKey(context, ports.keys()) : null;
    if (context.method === 'publickey' && key !== null) {
      // Without a signature the client only queries whether the key would be accepted.
      const isQuery = context.signature === undefined;
      if (!isQuery && hasSigned(context, key)) proven = key;
      if (isQuery || proven === key) {
        context.accept();
        return;
      }
    }
    ports.failed();
    attempts += 1;
    context.reject(['publickey']);
    if (attempts >= MAX_LOGIN_ATTEMPTS) client.end();
  }

  return new Promise((resolve) => {
    client.on('authentication', decide);
    client.once('ready', () => resolve(proven));
    client.once('close', () => resolve(null));
  });
}
