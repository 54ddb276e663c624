/** Port forwarding (direct-tcpip), only to the pod itself, so that it cannot bypass the pod's egress policy. */
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ServerChannel } from 'ssh2';
import { messageOf } from '#shared/runtime/errors.ts';
import type { ProcessPorts } from '../access/exec/run-process.ts';
import type { ExecProcess, OutputChunk } from '../containers/engine/exec.ts';
import { relayArgv } from './commands.ts';
import { joinSocket, type Meter, pumpInput, pumpOutput } from './pump.ts';
import type { SessionPod } from './session.ts';

export type Target = { host: string; port: number };

const LOOPBACK = new Map([
  ['localhost', '127.0.0.1'],
  ['127.0.0.1', '127.0.0.1'],
  ['::1', '::1'],
]);
const CONNECT_TIMEOUT_MS = 10_000;

/** Returns how to reach a target: by a relay inside the pod, or at the pod's address; null if it is not allowed. Pure. */
export function routeOf(
  { host, port }: Target,
  podAddresses: readonly string[],
): { kind: 'relay' | 'dial'; host: string } | null {
  if (!Number.isInteger(port) || port < 1 || port > 65_535) return null;
  const loopback = LOOPBACK.get(host.toLowerCase());
  if (loopback !== undefined) return { kind: 'relay', host: loopback };
  return podAddresses.includes(host) ? { kind: 'dial', host } : null;
}

/** Accepts or rejects the request; calls `onEnd` once in either case. */
export async function serveForward(
  ports: ProcessPorts,
  request: { accept(): ServerChannel; reject(): void; target: Target },
  options: { pod: SessionPod; meter: Meter; disconnected: AbortSignal; onEnd(): void },
): Promise<void> {
  const { accept, reject, target } = request;
  const { pod, meter, disconnected, onEnd } = options;
  const { engine, log } = ports;
  try {
    const route = routeOf(target, await engine.addressesOf(pod.container_id));
    if (route === null) {
      reject();
    } else if (route.kind === 'dial') {
      const socket = await dial(route.host, target.port, ports);
      await joinAndWait(accept(), socket, { meter, closed: disconnected });
    } else {
      const argv = relayArgv(route.host, target.port);
      const container = { containerId: pod.container_id, user: pod.user };
      const process = await engine.start({ ...container, argv, tty: false, environment: {} });
      await relay(accept(), process, { meter, closed: disconnected });
    }
  } catch (error) {
    log.debug({ detail: messageOf(error) }, 'forwarded connection failed');
    reject();
  } finally {
    onEnd();
  }
}

/** Drops the relay's stderr, which does not belong to the connection. */
async function relay(
  channel: ServerChannel,
  process: ExecProcess,
  options: { meter: Meter; closed: AbortSignal },
): Promise<void> {
  const channelClosed = new AbortController();
  channel.once('close', () => channelClosed.abort());
  channel.once('error', () => channelClosed.abort());
  const closed = AbortSignal.any([options.closed, channelClosed.signal]);
  closed.addEventListener('abort', process.close, { once: true });
  pumpInput(channel, process.input, { meter: options.meter, end: true });
  await pumpOutput(onlyStdout(process.output), channel, { meter: options.meter, closed });
  channel.end();
}

async function* onlyStdout(output: ExecProcess['output']): AsyncGenerator<OutputChunk> {
  for await (const chunk of output) if (chunk.stream === 'stdout') yield chunk;
}

function dial(host: string, port: number, { clock }: ProcessPorts): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, allowHalfOpen: true, noDelay: true });
    const signal = clock.deadline(CONNECT_TIMEOUT_MS);
    const onLate = () => socket.destroy(new Error('connection timed out'));
    signal.addEventListener('abort', onLate, { once: true });
    socket.once('connect', () => {
      signal.removeEventListener('abort', onLate);
      resolve(socket);
    });
    socket.once('error', reject);
  });
}

function joinAndWait(
  channel: ServerChannel,
  socket: Duplex,
  options: { meter: Meter; closed: AbortSignal },
): Promise<void> {
  joinSocket(channel, socket, options);
  return new Promise((resolve) => socket.once('close', resolve));
}
