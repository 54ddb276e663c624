import { afterEach, beforeEach, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { eventually } from '../../../../test/fakes/eventually.ts';
import { createManualClock, type ManualClock } from '../../../../test/fakes/manual-clock.ts';
import { createTestDatabase } from '../../../../test/fakes/scenes/central-database.ts';
import { TRUSTED_CLOCK } from '../../../../test/fakes/trusted-clock.ts';
import { createNotifier } from '../database/notifier.ts';
import type { Database, Db } from '../database/tables.ts';
import { createRetention } from './retention.ts';
import { createSchedule } from './schedule.ts';

const INTERVAL_MS = 600_000;

let db: Database;
let clock: ManualClock;
beforeEach(async () => {
  db = await createTestDatabase();
  clock = createManualClock();
});
afterEach(() => db.destroy());

/** Creates one process with its removals of old rows. */
function processWith(sweeps: Record<string, (tx: Db) => Promise<unknown>>) {
  const retention = createRetention({ db, sweeps });
  const log = createLog({ name: 'test', level: 'silent' });
  const { handler, begin } = retention;
  const parts = {
    db,
    clock,
    random: systemRandom,
    log,
    notifier: createNotifier(clock),
    begin,
    trust: TRUSTED_CLOCK,
  };
  return { retention, schedule: createSchedule({ ...parts, handlers: { retention: handler } }) };
}

it('removes rows at the start and then at intervals, once for all processes, and deletes scheduled removals that this version does not have', async () => {
  const swept: string[] = [];
  const sweeps = { old: async () => swept.push('old') };
  const processes = [processWith(sweeps), processWith(sweeps)];
  await db
    .insertInto('due_work')
    .values({
      kind: 'retention',
      subject: 'of another version',
      due_at: 1,
      look_at: 1,
      attempts: 0,
      last_error: null,
    })
    .execute();
  for (const { schedule } of processes) schedule.start();
  const rows = () => db.selectFrom('due_work').select(['subject', 'due_at']).execute();
  const next = [{ subject: 'old', due_at: clock.now() + INTERVAL_MS }];
  await eventually('the first', async () => JSON.stringify(await rows()) === JSON.stringify(next));
  expect(swept).toEqual(['old']);
  for (const { schedule } of processes) await schedule.stop();
  const [first, second] = processes;
  await clock.advance(INTERVAL_MS);
  await first?.schedule.runDue();
  await second?.schedule.runDue();
  expect(swept).toEqual(['old', 'old']);
});

it('when one removal fails, runs the other removals and retries the failed one', async () => {
  const swept: string[] = [];
  let isBroken = true;
  const { schedule, retention } = processWith({
    broken: async () => {
      if (isBroken) throw new Error('not now');
      swept.push('broken');
    },
    whole: async () => swept.push('whole'),
  });
  await retention.begin(clock.now());
  await schedule.runDue();
  expect(swept).toEqual(['whole']);
  isBroken = false;
  await clock.advance(1_000);
  await schedule.runDue();
  expect(swept).toEqual(['whole', 'broken']);
});
