/** Listens on free pod ports for a while and identifies each, so that a validator can test whether they are reachable. */
import { createServer, type Server } from 'node:net';
import {
  type PortCheckOpened,
  type PortCheckRequest,
  portAnswer,
} from '#shared/api/agent/host-checks.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { PortRange } from '../leases/port.service.ts';

/** Maximum number of connections per port; clients other than the validator may connect, too. */
const MAX_CONNECTIONS = 8;

export type PortCheckService = ReturnType<typeof createPortCheckService>;

export type PortCheckOptions = {
  clock: Clock;
  executorId: string;
  range: PortRange;
  isLeased(port: number): boolean;
  /** True if a pod is on this host. Rented hosts are not checked, so that checks do not disturb pods. */
  isRented(): boolean;
};

export function createPortCheckService(options: PortCheckOptions) {
  const { clock, executorId, range, isLeased, isRented } = options;
  let servers: Server[] = [];
  let isOpen = false;

  function closeAll(): void {
    for (const server of servers) server.close();
    [servers, isOpen] = [[], false];
  }

  const isOffered = (port: number) => port >= range.first && port <= range.last && !isLeased(port);

  function requireAllowed({ executor_id }: PortCheckRequest): void {
    if (executor_id !== executorId) {
      throw new ApiError('bad_request', 'The check is for another executor');
    }
    if (isRented())
      throw new ApiError('conflict', 'A pod is on this host: its ports are not checked');
    if (isOpen) throw new ApiError('conflict', 'Another port check is in progress');
  }

  return {
    /** Resolves once it listens, with the ports that could be opened. Throws 409 if rented or during another check. */
    async open(request: PortCheckRequest, stopping: AbortSignal): Promise<PortCheckOpened> {
      requireAllowed(request);
      isOpen = true;
      const ports = [...new Set(request.ports)].filter(isOffered);
      const results = await Promise.all(
        ports.map(async (port) => ({
          port,
          server: await listen(port, portAnswer(request, port)),
        })),
      );
      servers = results.flatMap(({ server }) => server ?? []);
      clock.sleep(request.open_ms, stopping).then(closeAll, closeAll);
      return { opened: results.flatMap(({ port, server }) => (server === null ? [] : [port])) };
    },
  };
}

/** Returns null if the port is in use. */
function listen(port: number, answer: string): Promise<Server | null> {
  return new Promise((resolve) => {
    const server = createServer((socket) => {
      socket.on('error', () => socket.destroy());
      socket.end(answer);
      socket.resume();
    });
    server.maxConnections = MAX_CONNECTIONS;
    server.once('error', () => resolve(null));
    server.listen(port, () => resolve(server));
  });
}
