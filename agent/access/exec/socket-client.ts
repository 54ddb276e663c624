/** A terminal's client behind a WebSocket: bytes both ways, sizes in, the exit status out. */
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import {
  MAX_TERMINAL_MESSAGE_BYTES,
  type TerminalExit,
  TerminalRequest,
} from '#shared/api/agent/terminal.ts';
import { CLOSE, sendMessage } from '#shared/http/websocket.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { ProcessClient } from './run-process.ts';
import type { TerminalSize } from './shell.ts';

export type SocketClient = ProcessClient & {
  /** How much went by. */
  bytes(): { sent: number; received: number };
  /** Since the last byte either way. */
  quietMs(): number;
};

/** Reads nothing before there is a process to feed. */
export function createSocketClient(
  socket: WebSocket,
  clock: Clock,
  on: { resize(size: TerminalSize): void; refuse(): void },
): SocketClient {
  const bytes = { sent: 0, received: 0 };
  let lastMs = clock.monotonicMs();

  function count(direction: keyof typeof bytes, length: number): void {
    bytes[direction] += length;
    lastMs = clock.monotonicMs();
  }

  function hear(text: string): void {
    const request = TerminalRequest.safeParse(parseJson(text));
    if (request.success) on.resize({ columns: request.data.cols, rows: request.data.rows });
    else on.refuse();
  }

  return {
    bytes: () => ({ ...bytes }),
    quietMs: () => clock.monotonicMs() - lastMs,
    feed(input: Duplex) {
      socket.on('message', (data: Buffer, isBinary: boolean) => {
        if (!isBinary) return hear(data.toString('utf8'));
        count('received', data.length);
        // A process that does not read makes its client wait.
        if (input.destroyed || input.write(data)) return;
        socket.pause();
        input.once('drain', () => socket.resume());
      });
      input.once('close', () => socket.resume());
      socket.resume();
    },
    async take({ data }) {
      count('sent', data.length);
      for (let at = 0; at < data.length; at += MAX_TERMINAL_MESSAGE_BYTES) {
        const part = data.subarray(at, at + MAX_TERMINAL_MESSAGE_BYTES);
        // It fails when the socket is closing, which is told by its close.
        await sendMessage(socket, part).catch(() => undefined);
      }
    },
    notStarted() {
      socket.send(Buffer.from('podwright: a shell cannot be run in the pod now\r\n'));
    },
    exited(code) {
      const note: TerminalExit = { type: 'exit', code };
      socket.send(JSON.stringify(note));
      // Its goodbye could not be read otherwise.
      socket.resume();
      socket.close(CLOSE.normal, 'exit');
    },
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
