/** Terminals of pods: how many, how long, who, and their end; never what was typed or shown. */

import type { WebSocket } from 'ws';
import type { TerminalQuery } from '#shared/api/agent/terminal.ts';
import { CLOSE } from '#shared/http/websocket.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { createCounter } from '#shared/runtime/semaphore.ts';
import type { ExecEngine } from '../../containers/engine/exec.ts';
import { TERMINAL_MARK } from './leftovers.ts';
import { runProcess } from './run-process.ts';
import { shellArgv } from './shell.ts';
import { createSocketClient } from './socket-client.ts';
import type { TerminalPorts } from './terminal-host.ts';

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
  const seats = createCounter(MAX_TERMINALS_PER_POD, MAX_TERMINALS);
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
      if (!seats.take(podId)) {
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
