import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { createCommandProgress } from '../../runtime/progress.ts';
import { systemRandom } from '../../runtime/random.ts';
import { writeArchive } from './archive.ts';

it('prints which part is pending and for how long, and completes without a part that hangs', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-'));
  const clock = createManualClock();
  let shown = '';
  const progress = createCommandProgress(clock, { write: (text) => (shown += text) });
  const quick = ['a', 'b', 'c'].map((name) => ({ name, collect: async () => name }));
  const hangs = { name: 'doctor.txt', collect: () => new Promise<string>(() => undefined) };
  try {
    const ports = { clock, random: systemRandom, redact: (text: string) => text, progress };
    const target = { path: join(folder, 'x'), option: '--out' };
    const archive = writeArchive(target, [...quick, hangs], ports);
    await clock.advance(12_000);
    expect(shown).toBe('… waiting for doctor.txt (5 s)\n… waiting for doctor.txt (10 s)\n');
    await clock.advance(30_000);
    const { bytes, parts } = await archive;
    expect(bytes).toBeGreaterThan(0);
    expect(parts.map(({ name }) => name)).toEqual(['a', 'b', 'c', 'doctor.txt']);
    expect(parts[3]?.chars).toBeGreaterThan('not available: '.length);
  } finally {
    progress.end();
    rmSync(folder, { recursive: true });
  }
});
