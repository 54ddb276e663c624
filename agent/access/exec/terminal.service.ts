/** Terminals of pods over WebSockets: limits, idle timeout, audit log. Input and output are never logged. */

import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import {
  MAX_TERMINAL_MESSAGE_BYTES,
  type TerminalExit,
  type TerminalQuery,
  TerminalRequest,
} from '#shared/api/agent/terminal.ts';
import { CLOSE, sendMessage } from '#shared/http/websocket.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { createPerOwnerLimit } from '#shared/runtime/semaphore.ts';
import type { ExecEngine } from '../../containers/engine/exec.ts';
import { TERMINAL_MARK } from './container-process.ts';
import { type ProcessClient, runProcess } from './run-process.ts';
import { shellArgv, type TerminalSize } from './shell.ts';
import { createStartPace } from './start-pace.ts';
import type { TerminalPorts } from './terminals.ts';

/** Maximum per pod: each terminal costs a process in the pod and two sockets of the agent. */
export const MAX_TERMINALS_PER_POD = 10;
/** Maximum in total, except the first terminal of each pod, so that one renter's pods cannot use up all terminals. */
export const MAX_TERMINALS = 100;
/** Time without input and output after which a terminal is closed. */
export const IDLE_TIMEOUT_MS = 3_600_000;
const IDLE_CHECK_MS = 60_000;
/** Maximum wait for shells to end when the agent stops. Processes that ignore SIGHUP keep running in the pod. */
const STOP_WITHIN_MS = 1_000;
const RETRY_AFTER_SECONDS = '5';

export type TerminalSlot = { podId: string; containerId: string; user: string; release(): void };
/** Caller as recorded in the audit log: signing key, and the request id, which the central API logs too. */
export type TerminalCaller = { signer: string | null; requestId: string };
export type Terminals = ReturnType<typeof createTerminals>;

export function createTerminals(ports: Omit<TerminalPorts, 'execEngine'> & { engine: ExecEngine }) {
  const { clock, terminalPod } = ports;
  const slots = createPerOwnerLimit(MAX_TERMINALS_PER_POD, MAX_TERMINALS, 1);
  const pace = createStartPace(clock);
  const running = new Set<Promise<unknown>>();
  const stopping = new AbortController();

  function track(work: Promise<unknown>): void {
    running.add(work);
    void work.finally(() => running.delete(work));
  }

  return {
    /** Reserves a slot for one terminal; the caller must release it. Throws ApiError. */
    reserve(podId: string): TerminalSlot {
      const pod = terminalPod(podId);
      if (pod === null) throw new ApiError('pod_not_found', 'There is no such pod on this node');
      const { containerId, user } = pod;
      if (containerId === null) throw new ApiError('pod_state_conflict', 'The pod does not run');
      if (!slots.tryAcquire(podId)) {
        throw new ApiError('rate_limited', 'There are too many terminals on this pod or node', {
          headers: { 'Retry-After': RETRY_AFTER_SECONDS },
          hint: 'Close another terminal, or retry later.',
        });
      }
      let isReleased = false;
      const release = () => {
        if (!isReleased) slots.release(podId);
        isReleased = true;
      };
      return { podId, containerId, user, release };
    },

    /** Runs a login shell behind `socket` until either ends. */
    serve(
      socket: WebSocket,
      { slot, query, caller }: { slot: TerminalSlot; query: TerminalQuery; caller: TerminalCaller },
    ): void {
      const log = ports.log.child({ pod_id: slot.podId });
      const record = { signer: caller.signer, request_id: caller.requestId };
      const startedMs = clock.monotonicMs();
      const socketClosed = new AbortController();
      socket.once('close', () => socketClosed.abort());
      // A message above the size limit causes an error, for example. Aborts at once: the closing handshake may take a
      // while.
      socket.once('error', () => socketClosed.abort());
      const closed = AbortSignal.any([socketClosed.signal, stopping.signal]);
      const size = { columns: query.cols, rows: query.rows };
      const client = createSocketClient(socket, clock, {
        onResize: (wanted) => shell.resize(wanted),
        onInvalidMessage() {
          socket.close(CLOSE.invalid, 'invalid_message');
          socketClosed.abort();
        },
      });
      const shell = runProcess(
        { engine: ports.engine, pace, clock, log, track },
        {
          client,
          size,
          closed,
          request: {
            containerId: slot.containerId,
            user: slot.user,
            argv: shellArgv(size),
            tty: true,
            environment: {
              TERM: query.term,
              USER: slot.user,
              LOGNAME: slot.user,
              [TERMINAL_MARK]: ports.executorId,
            },
          },
        },
      );
      log.info(record, 'terminal opened');
      const closeSocket = () => socket.close(CLOSE.goingAway, 'server_shutdown');
      stopping.signal.addEventListener('abort', closeSocket, { signal: socketClosed.signal });
      void shell.ended.then((exitCode) => {
        slot.release();
        const seconds = Math.round((clock.monotonicMs() - startedMs) / 1_000);
        log.info({ ...record, seconds, exit_code: exitCode, ...client.bytes() }, 'terminal closed');
      });
      void closeWhenIdle(socket, client, closed);
    },

    async close(): Promise<void> {
      stopping.abort();
      await Promise.race([Promise.allSettled(running), clock.sleep(STOP_WITHIN_MS)]);
    },
  };

  async function closeWhenIdle(
    socket: WebSocket,
    client: { idleMs(): number },
    closed: AbortSignal,
  ): Promise<void> {
    while (!closed.aborted) {
      await clock.sleep(IDLE_CHECK_MS, closed).catch(() => undefined);
      if (client.idleMs() > IDLE_TIMEOUT_MS) socket.close(CLOSE.normal, 'idle');
    }
  }
}

export type SocketClient = ProcessClient & {
  /** Bytes of output and input so far. */
  bytes(): { sent: number; received: number };
  /** Milliseconds since the last input or output. */
  idleMs(): number;
};

/** Does not read from the socket before `pipeInput`. */
export function createSocketClient(
  socket: WebSocket,
  clock: Clock,
  on: { onResize(size: TerminalSize): void; onInvalidMessage(): void },
): SocketClient {
  const bytes = { sent: 0, received: 0 };
  let lastMs = clock.monotonicMs();

  function count(direction: keyof typeof bytes, length: number): void {
    bytes[direction] += length;
    lastMs = clock.monotonicMs();
  }

  function handleText(text: string): void {
    const request = TerminalRequest.safeParse(parseJson(text));
    if (request.success) on.onResize({ columns: request.data.cols, rows: request.data.rows });
    else on.onInvalidMessage();
  }

  return {
    bytes: () => ({ ...bytes }),
    idleMs: () => clock.monotonicMs() - lastMs,
    pipeInput(input: Duplex) {
      socket.on('message', (data: Buffer, isBinary: boolean) => {
        if (!isBinary) return handleText(data.toString('utf8'));
        count('received', data.length);
        // Backpressure: stops reading from the client while the process does not read.
        if (input.destroyed || input.write(data)) return;
        socket.pause();
        input.once('drain', () => socket.resume());
      });
      input.once('close', () => socket.resume());
      socket.resume();
    },
    async write({ data }) {
      count('sent', data.length);
      for (let at = 0; at < data.length; at += MAX_TERMINAL_MESSAGE_BYTES) {
        const part = data.subarray(at, at + MAX_TERMINAL_MESSAGE_BYTES);
        // The send fails only when the socket closes, which ends the process anyway.
        await sendMessage(socket, part).catch(() => undefined);
      }
    },
    notStarted() {
      socket.send(Buffer.from('podwright: cannot start a shell in the pod\r\n'));
    },
    exited(code) {
      const message: TerminalExit = { type: 'exit', code };
      socket.send(JSON.stringify(message));
      // A paused socket would not receive the client's close frame.
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
