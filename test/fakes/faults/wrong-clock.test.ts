import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';

const HOUR_MS = 3_600_000;
const PRELOAD = new URL('wrong-clock.ts', import.meta.url).href;
/** Program that prints the wall clock in several forms until its input ends. */
const PROGRAM = `
  setInterval(() => console.log(Date.now(), +new Date(), +new Date(5), new Date() instanceof Date), 50);
  process.stdin.on('end', () => process.exit()).resume();
`;
const folder = mkdtempSync(join(tmpdir(), 'podwright-clock-'));

afterAll(() => rmSync(folder, { recursive: true }));

it('shifts the clock of a running process, and sets it right again', async () => {
  const file = join(folder, 'faults.json');
  const demand = (clockOffsetMs: number) =>
    writeFileSync(file, JSON.stringify({ clockOffsetMs, startDelayMs: 0 }));
  demand(HOUR_MS);
  const child = spawn(process.execPath, ['--import', PRELOAD, '-e', PROGRAM], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PODWRIGHT_TEST_FAULTS: file },
  });
  const offsets: number[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const [now = 0, made = 0, given] = line.split(' ').map(Number);
    expect([given, line.endsWith('true')]).toEqual([5, true]);
    for (const ms of [now, made]) {
      offsets.push(Math.round((ms - systemClock.now()) / HOUR_MS));
    }
    if (offsets.length === 2) demand(-HOUR_MS);
    if (offsets.at(-1) === -1) demand(0);
    if (offsets.at(-1) === 0) child.stdin.end();
  }
  expect([...new Set(offsets)]).toEqual([1, -1, 0]);
});
