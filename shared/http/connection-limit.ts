/** Limits the open connections of each source to a server, because each costs a descriptor and memory. */
import type { Server, Socket } from 'node:net';
import { clientAddressKey } from './addresses.ts';

/** Closes new connections of a source that has `perSource` open ones. The addresses of an IPv6 network are one source. */
export function limitConnections(server: Pick<Server, 'on'>, perSource: number): void {
  const open = new Map<string, number>();
  server.on('connection', (socket: Socket) => {
    const source = clientAddressKey(socket.remoteAddress);
    const count = open.get(source) ?? 0;
    if (count >= perSource) {
      socket.destroy();
      return;
    }
    open.set(source, count + 1);
    socket.once('close', () => {
      const left = (open.get(source) ?? 1) - 1;
      if (left > 0) open.set(source, left);
      else open.delete(source);
    });
  });
}
