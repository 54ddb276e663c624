/** Terminals of pods: how many, how long, who, and their end; never what was typed or shown. */

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
import type { TerminalPorts } from './terminals.ts';

/** Each is a process in the pod and two sockets here. */
export const MAX_TERMINALS_PER_POD = 10;
export const MAX_TERMINALS = 100;
/** A terminal that carried nothing either way for this long is closed. */
export const IDLE_TIMEOUT_MS = 3_600_000;
const IDLE_CHECK_MS = 60_000;
/** What takes no notice of a hang-up is left to its pod when the agent ends. */
const STOP_WITHIN_MS = 1_000;
const RETRY_AFTER_SECONDS = '5';

export type Seat = { podId: string; containerId: string; user: string; leave(): void };
/** For the record: the key that signed, and the request's id, which the central API's records name too. */
export type Visitor = { signer: string | null; requestId: string };
export type Terminals = ReturnType<typeof createTerminals>;

export function createTerminals(ports: Omit<TerminalPorts, 'execEngine'> & { engine: ExecEngine }) {
  const { clock, terminalPod } = ports;
  const seats = createPerOwnerLimit(MAX_TERMINALS_PER_POD, MAX_TERMINALS);
  const running = new Set<Promise<unknown>>();
  const stopping = new AbortController();

  function track(work: Promise<unknown>): void {
    running.add(work);
    void work.finally(() => running.delete(work));
  }

  return {
    /** A place for one terminal, to be given back. Throws ApiError. */
    reserve(podId: string): Seat {
      const pod = terminalPod(podId);
      if (pod === null) throw new ApiError('pod_not_found', 'There is no such pod on this node');
      const { containerId, user } = pod;
      if (containerId === null) throw new ApiError('pod_state_conflict', 'The pod does not run');
      if (!seats.tryAcquire(podId)) {
        throw new ApiError('rate_limited', 'There are too many terminals on this pod or node', {
          headers: { 'Retry-After': RETRY_AFTER_SECONDS },
          hint: 'Close another terminal, or retry later.',
        });
      }
      let held = true;
      const leave = () => {
        if (held) seats.release(podId);
        held = false;
      };
      return { podId, containerId, user, leave };
    },

    /** Runs a login shell behind `socket` until either ends. */
    serve(
      socket: WebSocket,
      { seat, query, who }: { seat: Seat; query: TerminalQuery; who: Visitor },
    ): void {
      const log = ports.log.child({ pod_id: seat.podId });
      const record = { signer: who.signer, request_id: who.requestId };
      const startedMs = clock.monotonicMs();
      const left = new AbortController();
      socket.once('close', () => left.abort());
      // A message above the bound, for one: its goodbye may take a while.
      socket.once('error', () => left.abort());
      const gone = AbortSignal.any([left.signal, stopping.signal]);
      const size = { columns: query.cols, rows: query.rows };
      const client = createSocketClient(socket, clock, {
        resize: (wanted) => shell.resize(wanted),
        refuse() {
          socket.close(CLOSE.invalid, 'invalid_message');
          left.abort();
        },
      });
      const shell = runProcess(
        { engine: ports.engine, clock, log, track },
        {
          client,
          size,
          gone,
          request: {
            containerId: seat.containerId,
            user: seat.user,
            argv: shellArgv(size),
            tty: true,
            environment: {
              TERM: query.term,
              USER: seat.user,
              LOGNAME: seat.user,
              [TERMINAL_MARK]: ports.executorId,
            },
          },
        },
      );
      log.info(record, 'terminal begins');
      const sayGoodbye = () => socket.close(CLOSE.goingAway, 'server_shutdown');
      stopping.signal.addEventListener('abort', sayGoodbye, { signal: left.signal });
      void shell.ended.then((exitCode) => {
        seat.leave();
        const seconds = Math.round((clock.monotonicMs() - startedMs) / 1_000);
        log.info({ ...record, seconds, exit_code: exitCode, ...client.bytes() }, 'terminal ends');
      });
      void closeWhenIdle(socket, client, gone);
    },

    async close(): Promise<void> {
      stopping.abort();
      await Promise.race([Promise.allSettled(running), clock.sleep(STOP_WITHIN_MS)]);
    },
  };

  async function closeWhenIdle(
    socket: WebSocket,
    client: { quietMs(): number },
    gone: AbortSignal,
  ): Promise<void> {
    while (!gone.aborted) {
      await clock.sleep(IDLE_CHECK_MS, gone).catch(() => undefined);
      if (client.quietMs() > IDLE_TIMEOUT_MS) socket.close(CLOSE.normal, 'idle');
    }
  }
}

// MERGED agent/access/exec/terminal.service.ts: A terminal's client behind a WebSocket: bytes both ways, sizes in, the exit status out.
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
