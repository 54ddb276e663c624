import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { commandProgress } from '../../runtime/progress.ts';
import { systemRandom } from '../../runtime/random.ts';
import { writeBundle } from './bundle.ts';

it('says what it waits for and since when, and does without a part that never comes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-'));
  const clock = createManualClock();
  let told = '';
  const progress = commandProgress(clock, { write: (text) => (told += text) });
  const quick = ['a', 'b', 'c'].map((name) => ({ name, collect: async () => name }));
  const hangs = { name: 'doctor.txt', collect: () => new Promise<string>(() => undefined) };
  try {
    const ports = { clock, random: systemRandom, redact: (text: string) => text, progress };
    const bundle = writeBundle(join(folder, 'x'), [...quick, hangs], ports);
    await clock.advance(12_000);
    expect(told).toBe('… waiting for doctor.txt (5 s)\n… waiting for doctor.txt (10 s)\n');
    await clock.advance(30_000);
    const { bytes, parts } = await bundle;
    expect(bytes).toBeGreaterThan(0);
    expect(parts.map(({ name }) => name)).toEqual(['a', 'b', 'c', 'doctor.txt']);
    expect(parts[3]?.chars).toBeGreaterThan('could not be had: '.length);
  } finally {
    progress.end();
    rmSync(folder, { recursive: true });
  }
});
