/**
 * Observes which protocol a port speaks after a request to it has failed, to name the cause: a TLS client cannot
 * distinguish plain HTTP from other protocols, and a plain client only observes a closed connection.
 */
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type Clock, isTimeout, withDeadline } from '../runtime/clock.ts';
import { hasCode } from '../runtime/errors.ts';

/**
 * `other`: another protocol, such as SSH. `silent`: a program accepts connections and sends nothing. `refused`: no
 * program listens. `no_answer`: the connection attempt timed out.
 */
export const PORT_PROTOCOLS = [
  'tls',
  'http',
  'other',
  'silent',
  'refused',
  'no_answer',
  'unreachable',
] as const;
export type PortProtocol = (typeof PORT_PROTOCOLS)[number];

/** Protocol of the request that failed. */
export const SENT_PROTOCOLS = ['tls', 'http'] as const;
export type SentProtocol = (typeof SENT_PROTOCOLS)[number];

type Place = { host: string; port: number };

/** Deadline of each connection, milliseconds. */
const CONNECTION_MS = 3_000;
const SECONDS = CONNECTION_MS / 1_000;
/** A request that every HTTP server answers. */
const REQUEST = 'HEAD / HTTP/1.0\r\n\r\n';

/** Never rejects. Opens up to three connections, sends no secret, and returns nothing of the answers. */
export async function observePort(clock: Clock, place: Place): Promise<PortProtocol> {
  const problem = await within(clock, connect(place), 'connect');
  if (problem !== null) return connectionProblem(problem);
  const secure = connectTls({ ...place, rejectUnauthorized: false });
  if ((await within(clock, secure, 'secureConnect')) === null) return 'tls';
  return answerTo(clock, place);
}

/** Waits for an event of a new connection, and closes it. Returns null after the event, else the error. */
async function within(clock: Clock, socket: Socket, event: string): Promise<Error | null> {
  const { promise, resolve } = Promise.withResolvers<Error | null>();
  socket.once(event, () => resolve(null));
  socket.on('error', resolve);
  socket.once('close', () => resolve(new Error('closed')));
  try {
    return await withDeadline(clock, CONNECTION_MS, promise);
  } catch (error) {
    return error as Error;
  } finally {
    socket.destroy();
  }
}

function connectionProblem(error: Error): PortProtocol {
  if (hasCode(error, 'ECONNREFUSED')) return 'refused';
  return isTimeout(error) ? 'no_answer' : 'unreachable';
}

/** Sends a plain HTTP request and classifies the first bytes of the answer. */
async function answerTo(clock: Clock, place: Place): Promise<PortProtocol> {
  const socket = connect(place);
  const { promise, resolve } = Promise.withResolvers<PortProtocol>();
  socket.once('data', (bytes) =>
    resolve(bytes.toString('latin1').startsWith('HTTP/') ? 'http' : 'other'),
  );
  socket.on('error', () => resolve('silent'));
  socket.once('close', () => resolve('silent'));
  socket.write(REQUEST);
  try {
    return await withDeadline(clock, CONNECTION_MS, promise);
  } catch {
    return 'silent';
  } finally {
    socket.destroy();
  }
}

const NAMES: Record<SentProtocol, string> = { tls: 'TLS', http: 'plain HTTP' };

/** Returns a clause that names the cause. `sender`: the program whose request failed. */
export function describePort(found: PortProtocol, sent: SentProtocol, sender: string): string {
  switch (found) {
    case 'tls':
    case 'http':
      return found === sent
        ? `the port answers ${NAMES[found]}, but not the request of ${sender}`
        : `the port answers ${NAMES[found]}; ${sender} sent ${NAMES[sent]}`;
    case 'other':
      return 'another program answers at the port, neither with TLS nor with HTTP';
    case 'silent':
      return 'a program accepts connections at the port and does not answer';
    case 'refused':
      return 'the connection was refused: no program listens at the port';
    case 'no_answer':
      return `no answer to a connection within ${SECONDS} s: a firewall drops the packets, or the address is wrong`;
    case 'unreachable':
      return 'the address cannot be reached';
  }
}

/** Observes the port of a URL to which a request has failed, and describes the cause. */
export async function explainUrl(clock: Clock, url: string, sender: string): Promise<string> {
  const { protocol, hostname, port } = new URL(url);
  const sent = protocol === 'https:' ? 'tls' : 'http';
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const place = { host, port: Number(port) || DEFAULT_PORTS[sent] };
  return describePort(await observePort(clock, place), sent, sender);
}

const DEFAULT_PORTS: Record<SentProtocol, number> = { tls: 443, http: 80 };
