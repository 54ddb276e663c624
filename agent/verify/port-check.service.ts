/** Listens on free ports of pods for a while, and says on each which it is: for the validator to try the way here. */
import { createServer, type Server } from 'node:net';
import {
  type PortCheckOpened,
  type PortCheckRequest,
  portAnswer,
} from '#shared/api/agent/host-checks.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { PortRange } from '../leases/port.service.ts';

/** Of one port; strangers may come by, too. */
const MAX_CONNECTIONS = 8;

export type PortCheckService = ReturnType<typeof createPortCheckService>;

export type PortCheckOptions = {
  clock: Clock;
  executorId: string;
  range: PortRange;
  isLeased(port: number): boolean;
  /** Rented hosts are never disturbed (validator reference, decision 7). */
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

  function refuse({ executor_id: asked }: PortCheckRequest): void {
    if (asked !== executorId) {
      throw new ApiError('bad_request', 'The check is for another executor');
    }
    if (isRented())
      throw new ApiError('conflict', 'A pod is on this host: its ports are left alone');
    if (isOpen) throw new ApiError('conflict', 'Another check of ports is under way');
  }

  return {
    /** Answers once it listens; ports that cannot be had are left out. Throws 409 beside a pod or another check. */
    async open(request: PortCheckRequest, stopping: AbortSignal): Promise<PortCheckOpened> {
      refuse(request);
      isOpen = true;
      const ports = [...new Set(request.ports)].filter(isOffered);
      const tried = await Promise.all(
        ports.map(async (port) => ({
          port,
          server: await listen(port, portAnswer(request, port)),
        })),
      );
      servers = tried.flatMap(({ server }) => server ?? []);
      clock.sleep(request.open_ms, stopping).then(closeAll, closeAll);
      return { opened: tried.flatMap(({ port, server }) => (server === null ? [] : [port])) };
    },
  };
}

/** Null when something else listens there. */
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
