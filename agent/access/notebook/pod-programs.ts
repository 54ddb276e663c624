/** Runs programs inside a pod for its notebook: to completion, or detached. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { ExecEngine } from '../../containers/engine/exec.ts';
import { hangUp, signalGroup } from '../exec/container-process.ts';

export type ProgramResult = { exitCode: number; output: string };
export type PodPrograms = ReturnType<typeof createPodPrograms>;

/** User of all programs; templates do not name one. */
const USER = 'root';
/** Poll interval for the exit status, which the engine reports shortly after the end of the output. */
const EXIT_POLL_MS = 20;
const EXIT_POLLS = 250;
/** Time from SIGTERM to SIGKILL. */
const END_GRACE_MS = 5_000;
const END_POLL_MS = 100;
/** Exit status of shells for a program that cannot be started. */
const NOT_STARTED = 126;

/** All functions reject with EngineError if the container is not running. `onCreated` receives each exec id. */
export function createPodPrograms(deps: {
  exec: ExecEngine;
  clock: Clock;
  containerId: string;
  onCreated(execId: string): void;
}) {
  const { exec, clock, containerId, onCreated } = deps;

  async function exitCodeOf(inspect: () => Promise<{ exitCode: number | null }>): Promise<number> {
    for (let poll = 0; poll < EXIT_POLLS; poll += 1) {
      const { exitCode } = await inspect();
      if (exitCode !== null) return exitCode;
      await clock.sleep(EXIT_POLL_MS);
    }
    return NOT_STARTED;
  }

  return {
    /** Runs a program to completion. When `signal` aborts, ends it and throws the signal's reason. */
    async run(argv: readonly string[], signal: AbortSignal): Promise<ProgramResult> {
      signal.throwIfAborted();
      let execId = '';
      const process = await exec.start({
        containerId,
        argv,
        environment: {},
        user: USER,
        tty: false,
        onCreated(id) {
          execId = id;
          onCreated(id);
        },
      });
      process.input.end();
      signal.addEventListener('abort', process.close, { once: true });
      const tail = createTail();
      try {
        for await (const { data } of process.output) tail.add(data);
      } catch (error) {
        if (!signal.aborted) throw error;
      } finally {
        signal.removeEventListener('abort', process.close);
      }
      if (signal.aborted) {
        await this.end(execId);
        signal.throwIfAborted();
      }
      return { exitCode: await exitCodeOf(process.inspect), output: tail.all() };
    },

    startDetached: (argv: readonly string[], environment: Record<string, string>): Promise<void> =>
      exec.startDetached({ containerId, argv, environment, user: USER, onCreated }),

    isAlive: async (execId: string): Promise<boolean> =>
      (await exec.inspect(execId))?.exitCode === null,

    /** Ends a program and its session: SIGTERM, then SIGHUP and SIGKILL after the grace period. */
    async end(execId: string): Promise<void> {
      const state = await exec.inspect(execId);
      if (state === null || state.exitCode !== null) return;
      const target = { pid: state.pid, containerId };
      signalGroup(target, 'TERM');
      for (let waitedMs = 0; waitedMs < END_GRACE_MS; waitedMs += END_POLL_MS) {
        await clock.sleep(END_POLL_MS);
        if (!(await this.isAlive(execId))) return;
      }
      hangUp(target);
      signalGroup(target, 'KILL');
    },
  };
}

/** Maximum size of the end of a program's output that is retained, to be shown to the renter. */
const MAX_BYTES = 16_384;
const MAX_LINES = 15;
const MAX_CHARS = 2_000;

/** Buffers the last bytes of the output. */
export function createTail() {
  let tail = Buffer.alloc(0);
  return {
    add(data: Uint8Array): void {
      tail = Buffer.concat([tail, data]).subarray(-MAX_BYTES);
    },
    all: () => tail.toString('utf8'),
  };
}

/** Returns the last lines without colours, progress bars and other control characters. */
export function lastLines(text: string): string {
  return (
    text
      // Removes ANSI sequences: a control character before a bracket is ESC.
      .replace(/\p{Cc}\[[0-9;?]*[A-Za-z]/gu, '')
      .split(/[\r\n]+/)
      .map((line) => line.replace(/\p{Cc}/gu, '').trim())
      .filter((line) => line !== '')
      .slice(-MAX_LINES)
      .join('\n')
      .slice(-MAX_CHARS)
  );
}
