/** Serves one logged-in client: its channels, their limits, and the audit log. */
import type { Socket } from 'node:net';
import type { Connection } from 'ssh2';
import type { ProcessPorts } from '../access/exec/run-process.ts';
import type { GatewayPod } from '../access/ssh/gateway-files.ts';
import type { AuthorizedKey } from './authorized-keys.ts';
import { serveForward } from './forward.ts';
import type { Bounds, ConcurrencyLimits } from './limits.ts';
import type { Meter } from './pump.ts';
import { type SessionPod, serveSession } from './session.ts';

/** Open channels per connection; browsers behind a forwarded port open many. */
const MAX_SESSION_CHANNELS = 10;
const MAX_FORWARD_CHANNELS = 64;

type LoggedInClient = { socket: Socket; key: AuthorizedKey; isProbe: boolean; pod(): GatewayPod };

/** Runs until the client disconnects. The audit log records address, key and byte counts, never content. */
export function serveConnection(
  ports: ProcessPorts & { limits: ConcurrencyLimits; bounds: Bounds },
  client: Connection,
  { socket, key, isProbe, pod }: LoggedInClient,
): void {
  const { clock, log, limits, bounds } = ports;
  const podId = pod().id;
  const address = socket.remoteAddress ?? '';
  if (!isProbe && !limits.sessions.tryAcquire(podId)) {
    log.warn({ address, fingerprint: key.fingerprint }, 'session refused: limit reached');
    client.end();
    return;
  }
  const startedMs = clock.now();
  const disconnected = new AbortController();
  const bytes = { sent: 0, received: 0 };
  let lastMs = clock.monotonicMs();
  const open = { session: 0, forward: 0 };

  const meter: Meter = {
    sent(count) {
      bytes.sent += count;
      lastMs = clock.monotonicMs();
    },
    received(count) {
      bytes.received += count;
      lastMs = clock.monotonicMs();
    },
  };

  /** Reserves a channel; rejects the request and returns null at the limit or without a running pod. */
  function reserveChannel(
    kind: keyof typeof open,
    max: number,
    reject: () => void,
  ): SessionPod | null {
    const { container_id, ...rest } = pod();
    if (container_id === null || open[kind] >= max) {
      reject();
      return null;
    }
    open[kind] += 1;
    return { ...rest, container_id };
  }

  client.on('session', (accept, reject) => {
    const running = reserveChannel('session', MAX_SESSION_CHANNELS, reject);
    if (running === null) return;
    serveSession(ports, accept(), {
      pod: running,
      connection: `${address} ${socket.remotePort} ${socket.localAddress} ${socket.localPort}`,
      meter,
      disconnected: disconnected.signal,
      onEnd: () => {
        open.session -= 1;
      },
    });
  });
  client.on('tcpip', (accept, reject, { destIP, destPort }) => {
    const running = reserveChannel('forward', MAX_FORWARD_CHANNELS, reject);
    if (running === null) return;
    const target = { host: destIP, port: destPort };
    void serveForward(
      ports,
      { accept, reject, target },
      {
        pod: running,
        meter,
        disconnected: disconnected.signal,
        onEnd: () => {
          open.forward -= 1;
        },
      },
    );
  });
  // Reverse forwarding is not supported.
  client.on('request', (_accept, reject) => reject?.());

  const record = { address, fingerprint: key.fingerprint };
  if (!isProbe) log.info(record, 'session opened');
  socket.once('close', () => {
    disconnected.abort();
    if (isProbe) return;
    limits.sessions.release(podId);
    const seconds = Math.round((clock.now() - startedMs) / 1_000);
    log.info({ ...record, seconds, ...bytes }, 'session closed');
  });
  void endWhenIdle();

  async function endWhenIdle(): Promise<void> {
    while (!disconnected.signal.aborted) {
      await clock.sleep(bounds.idleCheckMs, disconnected.signal).catch(() => undefined);
      if (clock.monotonicMs() - lastMs > bounds.idleMs) socket.destroy();
    }
  }
}
