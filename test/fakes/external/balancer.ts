/** TCP balancer: passes each connection to the next server that accepts it. */
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';

export type Balancer = {
  origin: string;
  /** Ports of the servers on this machine, which the caller may change at any time. */
  ports: number[];
  close(): Promise<void>;
};

/** Listens on a free port. A connection that no server accepts is closed. */
export async function startBalancer(ports: number[]): Promise<Balancer> {
  const open = new Set<Socket>();
  let turn = 0;

  function join(client: Socket, server: Socket): void {
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      socket.once('close', () => other.destroy());
      socket.pipe(other);
    }
  }

  /** Tries the servers that are left, in turn. */
  function connect(client: Socket, left: readonly number[]): void {
    const [port, ...others] = left;
    if (port === undefined || client.destroyed) {
      client.destroy();
      return;
    }
    const server = keep(createConnection({ host: '127.0.0.1', port }));
    const tryNext = () => connect(client, others);
    server.once('error', tryNext);
    server.once('connect', () => {
      server.off('error', tryNext);
      join(client, server);
    });
  }

  function keep(socket: Socket): Socket {
    open.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => open.delete(socket));
    return socket;
  }

  const listener = createServer({ pauseOnConnect: true }, (client) => {
    turn += 1;
    const first = turn % Math.max(1, balancer.ports.length);
    const order = [...balancer.ports.slice(first), ...balancer.ports.slice(0, first)];
    connect(keep(client), order);
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const { port } = listener.address() as AddressInfo;
  const balancer: Balancer = {
    origin: `http://127.0.0.1:${port}`,
    ports,
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
  return balancer;
}
