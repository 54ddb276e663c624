import { expect, it } from 'vitest';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { createProgress, withProgress } from './progress.ts';

function scene(isTTY: boolean) {
  const clock = createManualClock();
  const written: string[] = [];
  const terminal = { write: (text: string) => void written.push(text), isTTY, columns: 60 };
  return { clock, written, progress: createProgress(clock, terminal) };
}

it('prints plain lines with elapsed times without a terminal, at most one every 5 s', async () => {
  const { clock, written, progress } = scene(false);
  progress.step('fetching');
  progress.at(1, 4);
  await clock.advance(6_000);
  progress.at(2, 4);
  await clock.advance(6_000);
  progress.step('checking');
  await clock.advance(5_000);
  progress.end();
  await clock.advance(60_000);
  const fetching = ['… fetching\n', '… fetching: 1 of 4 (5 s)\n', '… fetching: 2 of 4 (10 s)\n'];
  expect(written).toEqual([...fetching, '… checking\n', '… checking (5 s)\n']);
});

it('prints nothing for a command that ends at once, and stops when the command prints', async () => {
  const clock = createManualClock();
  const printed = { out: '', err: '' };
  const ports = {
    clock,
    stdout: { write: (text: string) => (printed.out += text) },
    stderr: { write: (text: string) => (printed.err += text) },
  };
  await withProgress('reading', ports, async ({ print }) => {
    print('all of it\n');
  });
  expect(printed).toEqual({ out: 'all of it\n', err: '' });
  const failing = withProgress('reading', ports, async ({ complain }, progress) => {
    progress.at(1, 2);
    await clock.sleep(12_000);
    complain('wrong\n');
    await clock.sleep(12_000);
    throw new Error('the end');
  });
  const failed = expect(failing).rejects.toThrow('the end');
  await clock.advance(60_000);
  await failed;
  expect(printed.err).toBe('… reading: 1 of 2 (5 s)\n… reading: 1 of 2 (10 s)\nwrong\n');
});

it('redraws one line on a terminal and prints each finished step with its duration', async () => {
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

it('prints a note above the current step, which continues', async () => {
  const drawn = scene(true);
  drawn.progress.step('fetching');
  drawn.progress.note('one is late');
  drawn.progress.end();
  expect(drawn.written.join('')).toMatch(/one is late\n.*… fetching 0 s/s);
  const plain = scene(false);
  plain.progress.step('fetching');
  plain.progress.note('one is late');
  expect(plain.written).toEqual(['… fetching\n', 'one is late\n']);
});
