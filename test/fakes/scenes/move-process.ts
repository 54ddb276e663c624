/** The command `move` of the central API as a real process. */
import { spawn } from 'node:child_process';
import { COMPILE_CACHE } from '#shared/runtime/node-process.ts';

export type MoveProcess = {
  kill(): void;
  /** Resolves when the process has ended; `code` is null if a signal killed it. */
  ended: Promise<{ code: number | null; output: string }>;
};

/** Starts `move` with further arguments, such as `--to ADDRESS`. */
export function startMoveProcess(file: string, ...args: readonly string[]): MoveProcess {
  const main = new URL('../../../validator/central/main.ts', import.meta.url).pathname;
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, [main, 'move', '--database', file, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH, NODE_COMPILE_CACHE: COMPILE_CACHE },
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
