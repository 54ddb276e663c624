import { expect, it } from 'vitest';
import type { CommandResult, RunCommand } from '#shared/runtime/run-command.ts';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { createNvidiaSmi } from './nvidia-smi.ts';

it('shares one run between callers and runs one at a time', async () => {
  const clock = createManualClock();
  const open: (() => void)[] = [];
  const run: RunCommand = () =>
    new Promise((resolve) => {
      open.push(() => resolve({ exitCode: 0, stdout: 'x', stderr: '', ended: null }));
    });
  const smi = createNvidiaSmi({ clock, runCommand: run });
  const answers = [smi.run(['-L']), smi.run(['-L']), smi.run(['-q'])];
  await clock.advance(0);
  expect(open).toHaveLength(1);
  open[0]?.();
  await answers[1];
  await clock.advance(0);
  expect(open).toHaveLength(2);
  open[1]?.();
  expect((await Promise.all(answers)).map((answer) => answer.stdout)).toEqual(['x', 'x', 'x']);
});

it('starts no run while one that cannot be killed hangs in the driver', async () => {
  const clock = createManualClock();
  const starts: (() => void)[] = [];
  const run: RunCommand = () =>
    new Promise((resolve) => {
      starts.push(() => resolve({ exitCode: null, stdout: '', stderr: '', ended: 'timeout' }));
    });
  const smi = createNvidiaSmi({ clock, runCommand: run });
  const first = smi.run(['-L']);
  await clock.advance(0);
  await clock.advance(11_000);
  expect((await first).problem).toMatch(/cannot be killed/);
  expect((await smi.run(['-L'])).problem).toMatch(/still hangs/);
  expect(starts).toHaveLength(1);
  starts[0]?.();
  await clock.advance(0);
  // The run has ended, but the pause after a hang still applies.
  expect((await smi.run(['-L'])).problem).toMatch(/paused/);
  await clock.advance(10_000);
  void smi.run(['-L']);
  await clock.advance(0);
  expect(starts).toHaveLength(2);
});

it('doubles the pause after each hang up to five minutes, and resets it after an answer', async () => {
  const clock = createManualClock();
  let hangs = 0;
  let starts = 0;
  let ended: CommandResult['ended'] = 'timeout';
  const run: RunCommand = async () => {
    starts += 1;
    return { exitCode: ended === null ? 0 : null, stdout: '', stderr: '', ended };
  };
  const onHang = () => {
    hangs += 1;
  };
  const smi = createNvidiaSmi({ clock, runCommand: run, onHang });
  const pauses = [10, 20, 40, 80, 160, 300, 300].map((seconds) => seconds * 1_000);
  for (const [count, pauseMs] of pauses.entries()) {
    expect((await smi.run(['-L'])).problem).toMatch(/did not end within 10000 ms$/);
    await clock.advance(pauseMs - 1);
    expect((await smi.run(['-L'])).problem).toMatch(/is paused for now/);
    expect([starts, hangs]).toEqual([count + 1, count + 1]);
    await clock.advance(1);
  }
  ended = null;
  expect(await smi.run(['-L'])).toMatchObject({ problem: null, exitCode: 0 });
  ended = 'timeout';
  await smi.run(['-L']);
  await clock.advance(10_000);
  ended = null;
  expect((await smi.run(['-L'])).problem).toBeNull();
});
