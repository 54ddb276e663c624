import { statfsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { eventually } from '../../test/fakes/eventually.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { createSideDisk } from './disk-space.ts';

it('reports disk use of other programs, measured once an hour', async () => {
  const clock = createManualClock();
  const answers = [Promise.resolve(0), Promise.resolve(2 ** 60), Promise.reject(new Error('away'))];
  for (const answer of answers) answer.catch(() => undefined);
  let asked = 0;
  const engineBytes = () => answers[asked++] ?? Promise.resolve(0);
  const sideDisk = createSideDisk({ clock, engineBytes });
  expect(sideDisk('/')).toBeNull();
  await eventually('the first measurement', () => sideDisk('/') !== null);
  const { bsize, blocks, bfree } = statfsSync('/');
  const usedKib = ((blocks - bfree) * bsize) / 1_024;
  // Other processes use the disk at the same time.
  expect(Math.abs((sideDisk('/') ?? 0) - usedKib)).toBeLessThan(0.2 * usedKib);
  expect(asked).toBe(1);
  await clock.advance(3_600_000);
  await eventually('no use by other programs', () => sideDisk('/') === 0);
  await clock.advance(3_600_000);
  await eventually('no figure while the engine does not answer', () => sideDisk('/') === null);
  expect(asked).toBe(3);
});
