/** Which restic the host has, asked of the program itself and remembered for a while. */
import { MAX_NAME_CHARS } from '#shared/api/agent/bounds.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';

const FRESH_MS = 600_000;
const RUN = { timeoutMs: 2_000, maxOutputBytes: 4_096 };

/** Null where there is none that runs. */
export type ReadResticVersion = () => Promise<string | null>;

export function createResticVersion(deps: {
  clock: Clock;
  runCommand: RunCommand;
  /** Its name or path. */
  program: string;
}): ReadResticVersion {
  const { clock, runCommand, program } = deps;
  let known: { atMs: number; version: Promise<string | null> } | null = null;

  async function ask(): Promise<string | null> {
    try {
      const { exitCode, stdout } = await runCommand(program, ['version'], RUN);
      const [, version = ''] = /^restic (\S+)/.exec(stdout) ?? [];
      return exitCode === 0 && version !== '' ? version.slice(0, MAX_NAME_CHARS) : null;
    } catch {
      return null;
    }
  }

  return () => {
    const nowMs = clock.monotonicMs();
    if (known === null || nowMs - known.atMs >= FRESH_MS) {
      known = { atMs: nowMs, version: ask() };
    }
    return known.version;
  };
}
