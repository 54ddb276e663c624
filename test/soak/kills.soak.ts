/** Runs the kill matrices of `npm test` with a kill before and after every change instead of a sample. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { figureAtMost, type Row } from '../measure/row.ts';

const RUNNER = join(import.meta.dirname, '../run/main.ts');
const MATRICES = ['kill-matrix', 'kill-change', 'engine-kill-matrix'];
const MS_PER_MINUTE = 60_000;

/** Each matrix prints its progress. A matrix fails as a whole: its first violation is in its output. */
export async function fullKillMatrices(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const name of MATRICES) {
    const startedMs = systemClock.monotonicMs();
    const path = `test/e2e/${name}.test.ts`;
    const run = spawn(process.execPath, [RUNNER, '--project', 'main', path], {
      stdio: 'inherit',
      env: { ...process.env, KILL_MATRIX: 'full' },
    });
    const [status] = await once(run, 'exit');
    const minutes = Math.round((systemClock.monotonicMs() - startedMs) / MS_PER_MINUTE);
    const label = `${name}: failed runs with all kills (${minutes} minutes)`;
    rows.push(figureAtMost(label, status === 0 ? 0 : 1, 'runs', 0));
  }
  return rows;
}
