/** A client of a terminal's WebSocket: sends input, collects the screen and records how the session ends. */

import type { WebSocket } from 'ws';
import { TerminalExit } from '#shared/api/agent/terminal.ts';
import { eventually } from '../eventually.ts';

export type TerminalClient = ReturnType<typeof createTerminalClient>;

/** Attaches to a socket that is paused or has just been opened. */
export function createTerminalClient(socket: WebSocket) {
  let screen = '';
  let bytes = 0;
  let exit: number | null = null;
  const closed = Promise.withResolvers<{ code: number; reason: string }>();
  socket.on('message', (data: Buffer, isBinary: boolean) => {
    if (!isBinary) {
      exit = TerminalExit.parse(JSON.parse(data.toString())).code;
      return;
    }
    bytes += data.length;
    screen = (screen + data.toString()).slice(-100_000);
  });
  socket.on('error', () => undefined);
  socket.once('close', (code, reason) => closed.resolve({ code, reason: String(reason) }));
  socket.resume();

  return {
    socket,
    type: (text: string) => socket.send(Buffer.from(text)),
    send: (message: unknown) => socket.send(JSON.stringify(message)),
    /** Returns true if the screen contains `text`. */
    hasShown: (text: string) => screen.includes(text),
    /** Waits until the screen contains `text`. */
    shows: (text: string) => eventually(`"${text}" on the screen`, () => screen.includes(text)),
    bytes: () => bytes,
    /** Returns the exit status; null if none was sent. */
    exit: () => exit,
    closed: closed.promise,
  };
}
