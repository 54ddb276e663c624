import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { createBuildLines, createBuildLogs, MAX_PART_CHARS } from './build-log.ts';

it('joins and splits output into lines', () => {
  const lines = createBuildLines(() => 7);
  lines.write('Step 1');
  lines.write('/2 : FROM a\n\nsecond\nopen');
  lines.end();
  lines.write('x'.repeat(40_000));
  lines.end();
  const logs = lines.list().map(({ log }) => log);
  expect(logs.slice(0, 3)).toEqual(['Step 1/2 : FROM a\n', 'second\n', 'open\n']);
  expect(logs.slice(3).map((log) => log.length)).toEqual([16_384, 16_384, 7_233]);
});

it('retains the first and the last lines of long output', () => {
  const lines = createBuildLines(() => 0);
  const text = `${'x'.repeat(1_023)}\n`;
  const count = (4 * MAX_PART_CHARS) / 1_024;
  for (let n = 0; n < count; n += 1) lines.write(text);
  const kept = lines.list().map(({ seq }) => seq);
  expect(kept).toHaveLength((2 * MAX_PART_CHARS) / 1_024);
  expect([kept[0], kept.at(-1), lines.count()]).toEqual([0, count - 1, count]);
  const jumps = kept.filter((seq, index) => index > 0 && seq !== (kept[index - 1] ?? 0) + 1);
  expect(jumps).toHaveLength(1);
});

it('stores a finished log in a file that only its owner can read', async () => {
  const home = mkdtempSync(join(tmpdir(), 'podwright-'));
  const folder = join(home, 'builds');
  const logs = createBuildLogs({ folder, clock: createManualClock() });
  const revisions = [logs.revision('aa')];
  logs.begin('aa').write('one\ntwo');
  revisions.push(logs.revision('aa'));
  await logs.end('aa');
  revisions.push(logs.revision('aa'));
  expect(new Set(revisions).size).toBe(3);
  const again = createBuildLogs({ folder, clock: createManualClock() });
  expect((await again.read('aa')).map(({ log }) => log)).toEqual(['one\n', 'two\n']);
  expect(readdirSync(folder)).toEqual(['aa.jsonl']);
  expect(statSync(join(folder, 'aa.jsonl')).mode & 0o777).toBe(0o600);
  await again.remove('aa');
  expect(await again.list()).toEqual([]);
  rmSync(home, { recursive: true });
});
