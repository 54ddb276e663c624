/** A command of this project as a real process. */
import { spawn } from 'node:child_process';
import { COMPILE_CACHE } from '#shared/runtime/node-process.ts';

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
  const main = new URL(`../../../${program}`, import.meta.url).pathname;
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, [main, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, ...environment },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString('utf8');
    });
  }
  return {
    kill: () => void child.kill('SIGKILL'),
    ended: new Promise((resolve) => child.once('close', (code) => resolve({ code, output }))),
  };
}
