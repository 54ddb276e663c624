/** Joins two WebSockets: messages, backpressure and the end pass from each to the other. */
import type { WebSocket } from 'ws';
import { codeToPassOn } from './close-codes.ts';
import { MAX_UNSENT_BYTES } from './send.ts';

export type Passed = { toFar(bytes: number): void; toNear(bytes: number): void };

const NOBODY: Passed = { toFar: () => undefined, toNear: () => undefined };

/** Takes two paused sockets. `passed` is told of every message's size. Resolves when both have closed. */
export async function joinWebSockets(
  near: WebSocket,
  far: WebSocket,
  passed = NOBODY,
): Promise<void> {
  const closed = Promise.all([pass(near, far, passed.toFar), pass(far, near, passed.toNear)]);
  near.resume();
  far.resume();
  await closed;
}

/** One direction. Whoever does not take what it is sent stops the reading of the other. */
function pass(from: WebSocket, to: WebSocket, passed: (bytes: number) => void): Promise<void> {
  from.on('message', (data: Buffer, isBinary: boolean) => {
    passed(data.length);
    to.send(data, { binary: isBinary }, () => {
      if (from.isPaused && to.bufferedAmount <= MAX_UNSENT_BYTES) from.resume();
    });
    if (to.bufferedAmount > MAX_UNSENT_BYTES) from.pause();
  });
  return new Promise((resolve) => {
    const end = (code: number, reason: Buffer) => {
      // Its goodbye could not be read while it is paused.
      if (to.isPaused) to.resume();
      to.close(codeToPassOn(code), reason);
      resolve();
    };
    if (from.readyState === from.CLOSED) end(1006, Buffer.alloc(0));
    else from.once('close', end);
  });
}
