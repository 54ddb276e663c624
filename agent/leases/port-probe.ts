/** Whether a host port can be listened on, found by trying. */
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

/** True when TCP and UDP on all IPv4 and IPv6 addresses can be bound right now. */
export type PortProbe = (port: number) => Promise<boolean>;

/** Errors that mean that the host has no such address family at all, not that the port is taken. */
const NO_SUCH_FAMILY = new Set(['EAFNOSUPPORT', 'EADDRNOTAVAIL']);

export const probePort: PortProbe = async (port) => {
  const answers = await Promise.all([
    canListen(port, '0.0.0.0'),
    canListen(port, '::'),
    canBindUdp(port, 'udp4'),
    canBindUdp(port, 'udp6'),
  ]);
  return answers.every((free) => free);
};

function canListen(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve(hasNoFamily(error)));
    server.listen({ port, host, ipv6Only: host === '::' }, () => {
      server.close(() => resolve(true));
    });
  });
}

function canBindUdp(port: number, type: 'udp4' | 'udp6'): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket({ type, ipv6Only: type === 'udp6' });
    socket.once('error', (error) => {
      socket.close();
      resolve(hasNoFamily(error));
    });
    socket.bind(port, () => socket.close(() => resolve(true)));
  });
}

function hasNoFamily(error: Error): boolean {
  return 'code' in error && NO_SUCH_FAMILY.has(String(error.code));
}
