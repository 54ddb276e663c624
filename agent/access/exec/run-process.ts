/** Runs one process in a container for a client, and ends it when the client disconnects. */
import type { Duplex } from 'node:stream';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type {
  ExecEngine,
  ExecProcess,
  ExecRequest,
  OutputChunk,
} from '../../containers/engine/exec.ts';
import { hangUp, type SignalName, signalGroup } from './container-process.ts';
import type { TerminalSize } from './shell.ts';
import type { StartPace } from './start-pace.ts';

export type ProcessPorts = {
  engine: ExecEngine;
  pace: StartPace;
  clock: Clock;
  log: Log;
  /** Registers work that must finish before this program exits. */
  track(work: Promise<unknown>): void;
};

/** The client of a process, over an SSH channel or a WebSocket. */
export type ProcessClient = {
  /** Pipes the client's input to the process, with backpressure. */
  pipeInput(input: Duplex): void;
  /** Writes output to the client; resolves when it accepts more. */
  write(chunk: OutputChunk): Promise<void>;
  /** Called last, when the process has ended. */
  exited(exitCode: number): void;
  /** Called before `exited` if the process could not be started. */
  notStarted(): void;
};

export type RunningProcess = {
  signal(name: SignalName): void;
  resize(size: TerminalSize): void;
  /** Resolves with the exit status, or with null if the client disconnected before. */
  ended: Promise<number | null>;
};

/** Time from SIGHUP to SIGKILL for a process whose client has disconnected. */
const HANG_UP_GRACE_MS = 5_000;
/**
 * Poll interval for the pid, which the engine reports shortly after the start, and for the exit status, which it
 * reports shortly after the end of the output.
 */
const STATE_POLL_MS = 10;
const STATE_POLLS = 300;
/** Exit status of shells for a command that cannot be started. */
const NOT_STARTED = 126;

/** Starts the process and reports a failed start to the client. `closed` aborts when the client disconnects. */
export function runProcess(
  ports: ProcessPorts,
  options: {
    client: ProcessClient;
    request: ExecRequest;
    size: TerminalSize | null;
    closed: AbortSignal;
  },
): RunningProcess {
  const { engine, pace, clock, log } = ports;
  const { client, request, closed } = options;
  const starting = pace.start(request.containerId, closed, () => engine.start(request));
  let wanted = options.size;
  let isSizing = false;

  /**
   * Returns the pid of the process; null if it has ended. Polls, because the client may disconnect while the process
   * starts.
   */
  async function pidOf(process: ExecProcess): Promise<number | null> {
    for (let poll = 0; poll < STATE_POLLS; poll += 1) {
      const { pid, exitCode } = await process.inspect();
      if (exitCode !== null) return null;
      if (pid > 0) return pid;
      await clock.sleep(STATE_POLL_MS);
    }
    return null;
  }

  async function withProcess(work: (process: ExecProcess, pid: number) => unknown): Promise<void> {
    try {
      const process = await starting;
      const pid = await pidOf(process);
      if (pid !== null) await work(process, pid);
    } catch (error) {
      log.debug({ detail: messageOf(error) }, 'process cannot be reached');
    }
  }

  /** Applies sizes one at a time, so that the last one wins; intermediate sizes are skipped. */
  async function applySizes(): Promise<void> {
    if (isSizing) return;
    isSizing = true;
    try {
      const process = await starting;
      while (wanted !== null) {
        const size = wanted;
        wanted = null;
        await process.resize(size);
      }
    } catch (error) {
      log.debug({ detail: messageOf(error) }, 'terminal resize failed');
    }
    isSizing = false;
  }

  const abandon = () =>
    withProcess(async (process, pid) => {
      const target = { pid, containerId: request.containerId };
      hangUp(target);
      for (let waited = 0; waited < HANG_UP_GRACE_MS; waited += HANG_UP_GRACE_MS / 10) {
        await clock.sleep(HANG_UP_GRACE_MS / 10);
        if ((await process.inspect()).exitCode !== null) return;
      }
      signalGroup(target, 'KILL');
    });

  async function passOutput(output: ExecProcess['output']): Promise<void> {
    try {
      for await (const chunk of output) {
        if (closed.aborted) return;
        await client.write(chunk);
      }
    } catch (error) {
      if (!closed.aborted) throw error;
    }
  }

  async function run(): Promise<number | null> {
    try {
      const process = await starting;
      closed.addEventListener('abort', process.close, { once: true });
      if (closed.aborted) process.close();
      client.pipeInput(process.input);
      void applySizes();
      await passOutput(process.output);
      closed.removeEventListener('abort', process.close);
      if (!closed.aborted) return await finish(process);
      await abandon();
    } catch (error) {
      const level = closed.aborted ? 'debug' : 'warn';
      log[level]({ detail: messageOf(error) }, 'process in a pod failed to run');
      if (closed.aborted) return null;
      client.notStarted();
      return end(NOT_STARTED);
    }
    return null;
  }

  async function finish(process: ExecProcess): Promise<number> {
    for (let poll = 0; poll < STATE_POLLS; poll += 1) {
      const { exitCode } = await process.inspect();
      if (exitCode !== null) return end(exitCode);
      await clock.sleep(STATE_POLL_MS);
    }
    // The process closed its outputs but keeps running; there is nothing left to wait for.
    return end(0);
  }

  function end(exitCode: number): number {
    client.exited(exitCode);
    return exitCode;
  }

  const ended = run();
  ports.track(ended);
  return {
    ended,
    signal(name) {
      void withProcess((_, pid) => signalGroup({ pid, containerId: request.containerId }, name));
    },
    resize(size) {
      wanted = size;
      void applySizes();
    },
  };
}
