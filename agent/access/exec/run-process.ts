/** One process in a container on behalf of a client: its streams, its end, and its end when the client vanishes. */
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

export type ProcessPorts = {
  engine: ExecEngine;
  clock: Clock;
  log: Log;
  /** Told of work that the end of this program waits for. */
  track(work: Promise<unknown>): void;
};

/** Whoever wanted the process, behind an SSH channel or a WebSocket. */
export type ProcessClient = {
  /** Passes on what the client sends, no faster than the process takes it. */
  feed(input: Duplex): void;
  /** Resolves when there is room for more. */
  take(chunk: OutputChunk): Promise<void>;
  /** Comes last: it has ended. */
  exited(exitCode: number): void;
  /** Comes before `exited`: it never began. */
  notStarted(): void;
};

export type RunningProcess = {
  signal(name: SignalName): void;
  resize(size: TerminalSize): void;
  /** Resolves with the exit status once the process has ended, or null when the client left before. */
  ended: Promise<number | null>;
};

/** From the hang-up to the kill of a process whose client has gone. */
const HANG_UP_GRACE_MS = 5_000;
/** The engine tells the pid a moment after the start, and the exit status after the end of the output. */
const STATE_POLL_MS = 10;
const STATE_POLLS = 300;
/** What a shell would answer for a command that cannot be started. */
const NOT_STARTED = 126;

/** Starts it; a start that fails is told to the client. `gone` aborts when the client leaves. */
export function runProcess(
  ports: ProcessPorts,
  options: {
    client: ProcessClient;
    request: ExecRequest;
    size: TerminalSize | null;
    gone: AbortSignal;
  },
): RunningProcess {
  const { engine, clock, log } = ports;
  const { client, request, gone } = options;
  const starting = engine.start(request);
  let wanted = options.size;
  let isSizing = false;

  /** Null when it has ended. A client may leave before the engine has quite begun. */
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
      log.debug({ detail: messageOf(error) }, 'a process could not be reached');
    }
  }

  /** One at a time, so that the last one wins; those in between are left out. */
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
      log.debug({ detail: messageOf(error) }, 'a terminal could not be resized');
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
        if (gone.aborted) return;
        await client.take(chunk);
      }
    } catch (error) {
      if (!gone.aborted) throw error;
    }
  }

  async function run(): Promise<number | null> {
    try {
      const process = await starting;
      gone.addEventListener('abort', process.close, { once: true });
      if (gone.aborted) process.close();
      client.feed(process.input);
      void applySizes();
      await passOutput(process.output);
      gone.removeEventListener('abort', process.close);
      if (!gone.aborted) return await finish(process);
      await abandon();
    } catch (error) {
      log.warn({ detail: messageOf(error) }, 'a process in a pod could not be run');
      if (gone.aborted) return null;
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
    // It has closed its outputs and goes on: nobody would hear of it any more.
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
