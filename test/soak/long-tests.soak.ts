/** Runs of the long tests: all of them, or the kill matrices with a kill before and after every change. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { figureAtMost, type Row } from '../measure/row.ts';

const RUNNER = join(import.meta.dirname, '../run/main.ts');
const MATRICES = ['kill-matrix', 'kill-change', 'engine-kill-matrix'];
const MS_PER_MINUTE = 60_000;

/**
 * The tests that `npm test` leaves out because they last minutes, and the repetition of the database tests on
 * PostgreSQL.
 */
export function longTests(): Promise<Row> {
  return testRun('long tests', ['--project', 'long', '--project', 'long-postgres'], {});
}

/** Runs the kill matrices with a kill before and after every change instead of a sample. */
export async function fullKillMatrices(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const name of MATRICES) {
    const words = ['--project', 'long', `test/e2e/${name}.long.test.ts`];
    rows.push(await testRun(`${name} with all kills`, words, { KILL_MATRIX: 'full' }));
  }
  return rows;
}

/** A run prints its progress and its failures; its row states only whether it passed. */
async function testRun(
  name: string,
  words: string[],
  environment: Record<string, string>,
): Promise<Row> {
  const startedMs = systemClock.monotonicMs();
  const run = spawn(process.execPath, [RUNNER, ...words], {
    stdio: 'inherit',
    env: { ...process.env, ...environment },
  });
  const [status] = await once(run, 'exit');
  const minutes = Math.round((systemClock.monotonicMs() - startedMs) / MS_PER_MINUTE);
  return figureAtMost(`${name}: failed runs (${minutes} minutes)`, status === 0 ? 0 : 1, 'runs', 0);
}
