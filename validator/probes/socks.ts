/**
 * Connections through a SOCKS5 proxy without authentication (RFC 1928), so that hosts see the proxy's address. The package
 * `socks` emits what follows the proxy's answer before an awaiting caller can listen, so an SSH banner could be lost.
 */
import { connect, isIPv4, type Socket } from 'node:net';
import type { OpenSocket, SshPlace } from '../inspection/rental-probe/ssh-session.ts';

const VERSION = 5;
const NO_AUTHENTICATION = 0;
const CONNECT = 1;
const RESERVED = 0;
const IPV4 = 1;
const NAME = 3;
const IPV6 = 4;
const IPV4_BYTES = 4;
const IPV6_BYTES = 16;
const PORT_BYTES = 2;
const MAX_NAME_BYTES = 255;

/** Errors name the proxy, not the host behind it, where the proxy is at fault. */
export const openThroughSocks =
  (proxy: SshPlace): OpenSocket =>
  async (place, signal) => {
    const socket = connect({ ...proxy, noDelay: true });
    // The connection closes after an error, which `readable` reports.
    socket.on('error', () => undefined);
    const stop = () => socket.destroy(new Error('no answer in time'));
    signal.addEventListener('abort', stop, { once: true });
    try {
      await negotiate(socket, place);
      return socket;
    } catch (error) {
      socket.destroy();
      throw error;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  };

async function negotiate(socket: Socket, place: SshPlace): Promise<void> {
  socket.write(Buffer.of(VERSION, 1, NO_AUTHENTICATION));
  const [version, method] = await read(socket, 2);
  if (version !== VERSION || method !== NO_AUTHENTICATION) {
    throw new ProxyFailed('the SOCKS proxy requires authentication, or is not one');
  }
  socket.write(Buffer.concat([Buffer.of(VERSION, CONNECT, RESERVED), addressOf(place)]));
  const [, status = 1, , kind] = await read(socket, 4);
  if (status !== 0) throw new Error(`not reached (SOCKS status ${status})`);
  const [length = 0] = kind === NAME ? await read(socket, 1) : [];
  const bytes = kind === IPV4 ? IPV4_BYTES : kind === IPV6 ? IPV6_BYTES : length;
  await read(socket, bytes + PORT_BYTES);
}

/** The proxy failed, which proves nothing about the host. */
export class ProxyFailed extends Error {}

function addressOf({ host, port }: SshPlace): Buffer {
  const portBytes = Buffer.alloc(PORT_BYTES);
  portBytes.writeUInt16BE(port);
  if (isIPv4(host)) {
    return Buffer.concat([Buffer.of(IPV4, ...host.split('.').map(Number)), portBytes]);
  }
  const name = Buffer.from(host);
  if (name.length > MAX_NAME_BYTES) throw new Error('the address is too long');
  return Buffer.concat([Buffer.of(NAME, name.length), name, portBytes]);
}

/** Reads exactly `bytes` bytes and leaves the rest in the socket. */
async function read(socket: Socket, bytes: number): Promise<Buffer> {
  for (;;) {
    const data = socket.read(bytes) as Buffer | null;
    if (data !== null) return data;
    await readable(socket);
  }
}

function readable(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    const onReadable = () => settle(resolve);
    const onClose = () =>
      settle(() => reject(new ProxyFailed('the SOCKS proxy ended the connection')));
    const settle = (done: () => void) => {
      socket.off('readable', onReadable).off('end', onClose).off('close', onClose);
      done();
    };
    socket.on('readable', onReadable).on('end', onClose).on('close', onClose);
  });
}
