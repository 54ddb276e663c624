import { expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { createTestDatabase } from '../../../test/fakes/scenes/central-database.ts';
import { createProcesses, LEASE_MS } from './processes.ts';

const log = createLog({ name: 'test', level: 'silent' });

it('counts the live processes at each heartbeat, and drops a process that is silent or has left', async () => {
  const db = await createTestDatabase();
  const clock = createManualClock();
  const create = (bootId: string) => createProcesses({ db, clock, log, bootId, shared: true });
  const [one, other, silent] = [create('one'), create('other'), create('silent')];
  for (const each of [one, other, silent]) await each.register();
  expect([one.count(), other.count(), silent.count()]).toEqual([1, 2, 3]);
  one.start();
  other.start();
  await clock.advance(2_000);
  await expect.poll(() => [one.count(), other.count()]).toEqual([3, 3]);
  const recent = async () =>
    (await db.selectFrom('central_processes').select('beat_at').execute()).filter(
      ({ beat_at: beatAt }) => beatAt >= clock.now() - 4_000,
    ).length;
  for (let passed = 0; passed <= LEASE_MS; passed += 2_000) {
    await clock.advance(2_000);
    // A heartbeat on PostgreSQL takes time, in which the clock must not pass the lease of its process.
    await expect.poll(recent).toBeGreaterThanOrEqual(2);
  }
  await expect.poll(() => [one.count(), other.count()]).toEqual([2, 2]);
  await other.leave();
  await clock.advance(2_000);
  await expect.poll(() => one.count()).toBe(1);
  await one.leave();
  await db.destroy();
});
