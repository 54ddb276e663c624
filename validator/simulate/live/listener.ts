/** Listener of a simulated central API: its processes listen on one address, one after the other. */
import type { Socket } from 'node:net';
import { type AddressNames, type ListenAddress, listenOn } from '#shared/http/listen.ts';
import type { HttpServer } from '#shared/http/server.ts';

export type Listener = {
  /** Lets a new process listen, if the listener is open. Returns the function that ends its connections. */
  attach(server: HttpServer): Promise<() => void>;
  /** Lets the present process and all later ones listen. */
  open(): Promise<void>;
  /** Ends all connections. */
  close(): void;
};

export function createListener(address: ListenAddress, names: AddressNames): Listener {
  let isOpen = false;
  let current: HttpServer | null = null;
  let hangUp = (): void => undefined;
  return {
    async attach(server) {
      current = server;
      hangUp = watchConnections(server);
      if (isOpen) await listenOn(server, address, names);
      return hangUp;
    },
    async open() {
      isOpen = true;
      if (current !== null) await listenOn(current, address, names);
    },
    close() {
      isOpen = false;
      hangUp();
    },
  };
}

/** Returns the function that closes the listener and all connections, as the end of a process does. */
function watchConnections({ server }: HttpServer): () => void {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
}
