/** Runs a short program in a running container and returns its output. */
import type { Clock } from '#shared/runtime/clock.ts';
import { EngineError } from './engine.ts';
import type { ExecEngine, ExecProcess } from './exec.ts';

const RUN_DEADLINE_MS = 10_000;
const EXIT_POLL_MS = 50;
const EXIT_POLLS = 20;
const MAX_OUTPUT_BYTES = 64 * 1024;
/** Maximum number of hanging programs that are remembered; at the limit, all are forgotten. */
const MAX_HANGING = 256;

/**
 * The returned function resolves with null if the program does not end within ten seconds. While an earlier program
 * still hangs in the container, it resolves with null at once. It rejects with EngineError if the program cannot be
 * started.
 */
export function createRunInContainer(options: { socketPath: string; clock: Clock }) {
  const { clock } = options;
  const hanging = new Map<string, ExecProcess>();
  let loaded: Promise<ExecEngine> | null = null;

  /** Loads the exec engine on the first call. */
  function engine(): Promise<ExecEngine> {
    loaded ??= import('./exec.ts').then(({ createExecEngine }) => createExecEngine(options));
    return loaded;
  }

  async function hangs(containerId: string): Promise<boolean> {
    const earlier = hanging.get(containerId);
    if (earlier === undefined) return false;
    const state = await earlier.inspect().catch((error: unknown) => {
      if (error instanceof EngineError && error.kind === 'not_found') return { exitCode: 0 };
      throw error;
    });
    if (state.exitCode !== null) hanging.delete(containerId);
    return state.exitCode === null;
  }

  /** Polls for the exit code, which the engine reports shortly after the end of the output. */
  async function exitCodeOf(started: ExecProcess): Promise<number | null> {
    for (let poll = 0; poll < EXIT_POLLS; poll += 1) {
      const { exitCode } = await started.inspect();
      if (exitCode !== null) return exitCode;
      await clock.sleep(EXIT_POLL_MS);
    }
    return null;
  }

  return async (containerId: string, argv: readonly string[]) => {
    if (await hangs(containerId)) return null;
    const request = { containerId, argv, environment: {}, user: '', tty: false };
    const started = await (await engine()).start(request);
    const deadline = clock.deadline(RUN_DEADLINE_MS);
    deadline.addEventListener('abort', () => started.close(), { once: true });
    let stdout = '';
    try {
      started.input.end();
      for await (const { stream, data } of started.output) {
        if (stream === 'stdout') stdout += Buffer.from(data).toString('utf8');
        if (stdout.length > MAX_OUTPUT_BYTES) break;
      }
    } catch (error) {
      if (!deadline.aborted) throw error;
    }
    const exitCode = deadline.aborted ? null : await exitCodeOf(started);
    started.close();
    if (exitCode !== null) return { exitCode, stdout };
    if (hanging.size >= MAX_HANGING) hanging.clear();
    hanging.set(containerId, started);
    return null;
  };
}
