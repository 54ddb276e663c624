/**
 * Runs the tests and restores the host afterwards, also after Ctrl-C. Passes its arguments to vitest. The tests get a
 * session and a temporary folder that end with the run. Anything left outside them fails a run that otherwise passed.
 */
import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { COMPILE_CACHE } from '#shared/runtime/node-process.ts';
import {
  hostState,
  killProcesses,
  RUN_VARIABLE,
  removeHostChanges,
  removeObjects,
} from './leftovers.ts';

const VITEST = join(import.meta.dirname, '../../node_modules/vitest/vitest.mjs');
const INTERRUPTED = 130;

process.exitCode = await runTests(process.argv.slice(2));

async function runTests(words: readonly string[]): Promise<number> {
  const before = hostState();
  const folder = mkdtempSync(join(tmpdir(), 'podwright-test-'));
  // Programs that run as other users, such as PostgreSQL, create folders in it.
  chmodSync(folder, 0o1777);
  const id = basename(folder);
  const tests = spawn(process.execPath, [VITEST, 'run', ...words], {
    stdio: 'inherit',
    // A separate session: only this process receives the signal of Ctrl-C.
    detached: true,
    env: { ...process.env, NODE_COMPILE_CACHE: COMPILE_CACHE, TMPDIR: folder, [RUN_VARIABLE]: id },
  });
  const run = { id, folder, session: tests.pid ?? -1 };
  let isInterrupted = false;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      isInterrupted = true;
      killProcesses(run);
    });
  }
  const status = await new Promise<number>((resolve) => {
    tests.once('exit', (code) => resolve(code ?? 1));
  });

  const left = killProcesses(run).map((command) => `process ${command}`);
  left.push(...removeObjects(run, before), ...removeHostChanges(run, before));
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  if (isInterrupted) {
    process.stdout.write('interrupted\n');
    return INTERRUPTED;
  }
  if (left.length === 0) return status;
  process.stderr.write(
    `The tests did not remove the following; they are removed now:\n${left.join('\n')}\n`,
  );
  return status === 0 ? 1 : status;
}
