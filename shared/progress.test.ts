import { expect, it } from 'vitest';
import { createManualClock } from '../test/fakes/manual-clock.ts';
import { createProgress } from './progress.ts';

function scene(isTTY: boolean) {
  const clock = createManualClock();
  const written: string[] = [];
  const terminal = { write: (text: string) => void written.push(text), isTTY, columns: 60 };
  return { clock, written, progress: createProgress(clock, terminal) };
}

it('writes plain lines with times where nobody sees a line drawn anew, and not too many', async () => {
  const { clock, written, progress } = scene(false);
  progress.step('fetching');
  progress.at(1, 4);
  await clock.advance(6_000);
  progress.at(2, 4);
  progress.at(3, 4);
  progress.step('checking');
  progress.end();
  expect(written).toEqual(['… fetching\n', '… fetching: 2 of 4 (6 s)\n', '… checking\n']);
});

it('draws one line anew on a terminal, and leaves each step with its time', async () => {
  const { clock, written, progress } = scene(true);
  progress.step('fetching');
  progress.at(1, 4);
  await clock.advance(2_000);
  progress.end();
  const before = written.length;
  await clock.advance(5_000);
  expect(written).toHaveLength(before);
  expect(written.slice(0, -1).every((text) => text.startsWith('\r\u001b[2K… fetching'))).toBe(true);
  expect(written).toContain('\r\u001b[2K… fetching [#####...............] 1/4 0 s');
  expect(written).toContain('\r\u001b[2K… fetching [#####...............] 1/4 2 s');
  expect(written.at(-1)).toBe('\r\u001b[2K… fetching (2 s)\n');
  progress.step('x'.repeat(100));
  expect(written.at(-1)?.length).toBeLessThan(70);
  progress.end();
});
