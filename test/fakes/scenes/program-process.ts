/** Programs of this project as real processes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { COMPILE_CACHE } from '#shared/runtime/node-process.ts';
import { eventually } from '../eventually.ts';

const READY_WITHIN_MS = 120_000;

export type ProgramProcess = {
  child: ChildProcess;
  /** Output so far. */
  output(): string;
  /** Sends the signal and resolves with the exit code; null if the signal killed the process. */
  end(signal?: NodeJS.Signals): Promise<number | null>;
};

/** Starts `program`, a path relative to the root of the checkout, and collects its output. */
export function spawnProgram(
  program: string,
  args: readonly string[],
  environment: Record<string, string>,
) {
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
  return { child, output: () => output };
}

/**
 * Starts `program`, a path relative to the root of the checkout. Rejects with its output when it exits before it prints
 * `ready`.
 */
export async function startProgram(
  program: string,
  ready: string,
  environment: Record<string, string>,
): Promise<ProgramProcess> {
  const { child, output } = spawnProgram(program, [], environment);
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  await eventually(
    ready,
    () => {
      if (child.exitCode !== null) throw new Error(`ended early:\n${output()}`);
      return output().includes(ready);
    },
    READY_WITHIN_MS,
  );
  return {
    child,
    output,
    async end(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      return exited;
    },
  };
}
