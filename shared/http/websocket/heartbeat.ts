/** Finds out whether the other side of a WebSocket is still there. */
import type { WebSocket } from 'ws';
import type { Clock } from '../../runtime/clock.ts';

/** How often the other side is asked. */
export const PING_INTERVAL_MS = 15_000;
/** Questions without an answer, and without a byte taken, after which it counts as dead. */
const MAX_MISSED = 3;

/**
 * Until the socket closes. One that we do not read cannot answer us and is left alone; one that takes
 * what we send is alive, however far it has fallen behind.
 */
export function keepAlive(socket: WebSocket, clock: Clock): void {
  const closed = new AbortController();
  let missed = 0;
  let unsent = 0;
  socket.once('close', () => closed.abort());
  socket.on('pong', () => {
    missed = 0;
  });

  async function ask(): Promise<void> {
    for (;;) {
      await clock.sleep(PING_INTERVAL_MS, closed.signal);
      const isMoving = socket.bufferedAmount < unsent;
      unsent = socket.bufferedAmount;
      missed = isMoving || socket.isPaused ? 0 : missed + 1;
      if (missed > MAX_MISSED) socket.terminate();
      else if (socket.readyState === socket.OPEN) socket.ping();
    }
  }
  // It ends by the socket's close; that rejection is not news.
  ask().catch(() => undefined);
}
