/** A command of this project as a real process. */
import { spawnProgram } from './program-process.ts';

export type CommandProcess = {
  kill(): void;
  /** Resolves when the process has ended; `code` is null if a signal killed it. */
  ended: Promise<{ code: number | null; output: string }>;
};

/** Starts `program`, a path relative to the root of the checkout. */
export function startCommand(
  program: string,
  args: readonly string[],
  environment: Record<string, string> = {},
): CommandProcess {
  const { child, output } = spawnProgram(program, args, environment);
  return {
    kill: () => void child.kill('SIGKILL'),
    ended: new Promise((resolve) =>
      child.once('close', (code) => resolve({ code, output: output() })),
    ),
  };
}
