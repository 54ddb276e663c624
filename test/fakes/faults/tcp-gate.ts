/** TCP proxy that a test can close: then all connections break and new ones fail, as with an unreachable server. */
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';

export type TcpGate = {
  port: number;
  setOpen(value: boolean): void;
  close(): Promise<void>;
};

/** Listens on a free port and forwards to a port on this machine. */
export async function startTcpGate(target: number): Promise<TcpGate> {
  const open = new Set<Socket>();
  let isOpen = true;
  const server = createServer((client) => {
    if (!isOpen) {
      client.destroy();
      return;
    }
    const upstream = createConnection({ host: '127.0.0.1', port: target });
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => {
        open.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const cutOff = () => {
    for (const socket of open) socket.destroy();
  };
  return {
    port,
    setOpen(value) {
      isOpen = value;
      if (!value) cutOff();
    },
    async close() {
      cutOff();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
