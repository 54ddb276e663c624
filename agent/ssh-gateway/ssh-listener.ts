/** The SSH server of one pod: listens on its port with its host key, and lets in who has one of its keys. */

import { createServer, type Server as NetServer, type Socket } from 'node:net';
import ssh2, { type AuthContext, type Connection } from 'ssh2';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { GatewayPod } from '../access/ssh/gateway-files.ts';
import type { ExecEngine } from '../containers/engine/exec.ts';
import type { FailureLimit } from '../identity/auth.ts';
import { type AuthorizedKey, hasSigned, keyMeant, parseAuthorizedKeys } from './authorized-keys.ts';
import { serveConnection } from './connection.ts';
import type { Bounds, Seats } from './limits.ts';

export type DoorPorts = {
  engine: ExecEngine;
  clock: Clock;
  log: Log;
  track(work: Promise<unknown>): void;
  /** Address to listen on. */
  host: string;
  limit: FailureLimit;
  seats: Seats;
  bounds: Bounds;
  /** Lets the gateway itself in from this machine, to see whether a login works. */
  probeKey: AuthorizedKey;
};

/** Somebody at the door; `arrived` aborts when the login is over, either way. */
type Caller = { socket: Socket; arrived: AbortController };

export type PodDoor = ReturnType<typeof createPodDoor>;

export const LOGIN_TIMEOUT_MS = 30_000;
const KEEPALIVE_INTERVAL_MS = 30_000;
const KEEPALIVE_MISSES = 4;
/** Those that Node does in native code; the clients' favourite is not among them and would be slow here. */
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

/** `listen` first; afterwards `update` with every change of the pod. */
export function createPodDoor(ports: DoorPorts, first: GatewayPod) {
  const log = ports.log.child({ pod_id: first.id });
  let pod = first;
  let keys = parseAuthorizedKeys(first.authorized_keys);
  const guests = new Map<Socket, AuthorizedKey>();
  const sockets = new Map<string, Caller>();

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
    if (!ports.limit.allows(address) || !ports.seats.waiting.tryAcquire(address)) {
      socket.destroy();
      return;
    }
    const name = nameOf(address, socket.remotePort);
    const arrived = new AbortController();
    arrived.signal.addEventListener('abort', () => ports.seats.waiting.release(address));
    sockets.set(name, { socket, arrived });
    socket.once('close', () => {
      sockets.delete(name);
      arrived.abort();
    });
    ports.clock.sleep(LOGIN_TIMEOUT_MS, arrived.signal).then(
      () => socket.destroy(),
      () => undefined,
    );
    protocol.injectSocket(socket);
  }

  protocol.on('connection', (client, { ip, port }) => {
    // A client that breaks the protocol off is no event; its end follows.
    client.on('error', (error) => log.debug({ detail: error.message }, 'connection broke'));
    const caller = sockets.get(nameOf(ip, port));
    if (caller === undefined) client.end();
    else void admit(client, caller);
  });

  async function admit(client: Connection, { socket, arrived }: Caller): Promise<void> {
    const address = socket.remoteAddress ?? '';
    const isOwn = address === socket.localAddress;
    const key = await logIn(client, {
      keys: () => (isOwn ? [...keys, ports.probeKey] : keys),
      failed: () => ports.limit.failed(address),
    });
    if (key === null) return;
    arrived.abort();
    // Between its signature and this moment its key may have been taken away.
    if (!isLetIn(key)) return void socket.destroy();
    guests.set(socket, key);
    socket.once('close', () => guests.delete(socket));
    const isProbe = key === ports.probeKey;
    serveConnection({ ...ports, log }, client, { socket, key, isProbe, pod: () => pod });
  }

  function isLetIn(key: AuthorizedKey): boolean {
    return key === ports.probeKey || keys.some(({ blob }) => blob.equals(key.blob));
  }

  return {
    port: first.port,
    /** Rejects when the port cannot be had. */
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
    /** Ends the sessions of keys that are gone. */
    update(next: GatewayPod): void {
      pod = next;
      keys = parseAuthorizedKeys(next.authorized_keys);
      for (const [socket, key] of guests) if (!isLetIn(key)) socket.destroy();
    },
    /** Ends the listener and every connection. */
    close(): void {
      listener.close();
      for (const { socket } of sockets.values()) socket.destroy();
    },
  };
}

function nameOf(address: string, port: number | undefined): string {
  return `${address} ${port}`;
}

// MERGED agent/ssh-gateway/ssh-listener.ts: Who may come in: public keys only, each proved by a signature, with a bound on tries.
export const MAX_TRIES = 6;

export type LoginPorts = {
  /** The pod's keys as they are at this moment. */
  keys(): readonly AuthorizedKey[];
  /** Counts against the address. */
  failed(): void;
};

/** Resolves with the key that was proved, or null when the client ran out of tries or left. */
export function logIn(client: Connection, ports: LoginPorts): Promise<AuthorizedKey | null> {
  let tries = 0;
  let proved: AuthorizedKey | null = null;

  function decide(context: AuthContext): void {
    // Clients begin with it to learn what is offered.
    if (context.method === 'none') {
      context.reject(['publickey']);
      return;
    }
    const key = context.method === 'publickey' ? keyMeant(context, ports.keys()) : null;
    if (context.method === 'publickey' && key !== null) {
      const isQuestion = context.signature === undefined;
      if (!isQuestion && hasSigned(context, key)) proved = key;
      if (isQuestion || proved === key) {
        context.accept();
        return;
      }
    }
    ports.failed();
    tries += 1;
    context.reject(['publickey']);
    if (tries >= MAX_TRIES) client.end();
  }

  return new Promise((resolve) => {
    client.on('authentication', decide);
    client.once('ready', () => resolve(proved));
    client.once('close', () => resolve(null));
  });
}
