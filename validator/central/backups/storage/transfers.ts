/** Limits of requests of restic: concurrency, idle time and duration. */
import type { Socket } from 'node:net';
import type { Clock } from '#shared/runtime/clock.ts';
import { ResticRefusal } from './restic-protocol.ts';

export type TransferLimits = {
  /** Maximum number of concurrent requests; restic uses five connections. */
  perRepository: number;
  total: number;
  /** Idle time after which the connection is closed. */
  stallMs: number;
  /** Maximum duration of one request: 512 MiB at 150 kB/s. */
  longestMs: number;
};

export const TRANSFER_LIMITS: TransferLimits = {
  perRepository: 16,
  total: 256,
  stallMs: 60_000,
  longestMs: 3_600_000,
};

export type Transfers = ReturnType<typeof createTransfers>;

export type TransfersOptions = { clock: Clock; limits: TransferLimits; stopping: AbortSignal };

/** Closes all connections when `stopping` aborts; restic retries. */
export function createTransfers({ clock, limits, stopping }: TransfersOptions) {
  const counts = new Map<string, number>();
  const sockets = new Set<Socket>();
  let total = 0;
  stopping.addEventListener('abort', () => {
    for (const socket of sockets) socket.destroy();
  });

  function leave(repositoryId: string): void {
    const count = (counts.get(repositoryId) ?? 0) - 1;
    total -= 1;
    if (count > 0) counts.set(repositoryId, count);
    else counts.delete(repositoryId);
  }

  return {
    /** Counts a request until the returned function is called. Throws 503 above the limits; restic retries. */
    begin(repositoryId: string, socket: Socket): () => void {
      const count = counts.get(repositoryId) ?? 0;
      if (count >= limits.perRepository || total >= limits.total) {
        throw new ResticRefusal(503, 'Too many transfers at a time');
      }
      counts.set(repositoryId, count + 1);
      total += 1;
      sockets.add(socket);
      // Without a listener, Node destroys a socket on time-out. Node restores its own time-out after the answer.
      socket.setTimeout(limits.stallMs);
      const ended = new AbortController();
      clock.sleep(limits.longestMs, ended.signal).then(
        () => socket.destroy(),
        () => undefined,
      );
      return () => {
        if (ended.signal.aborted) return;
        ended.abort();
        sockets.delete(socket);
        leave(repositoryId);
      };
    },
  };
}
