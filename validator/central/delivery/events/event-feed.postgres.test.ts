/**
 * The order of a feed when transactions commit in a different order than they started, which happens only on
 * PostgreSQL.
 */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import {
  createTestCentral,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import type { Db } from '../../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { recordEvent } from './event.service.ts';
import { placeEvents, readFeed } from './event-feed.store.ts';

let central: TestCentral;
let accountId: string;
beforeEach(async () => {
  central = await createTestCentral();
  accountId = (await central.signUp()).id;
});
afterEach(() => central.close());

function record(db: Db, name: string): Promise<void> {
  return recordEvent(
    db,
    { clock: systemClock, random: systemRandom },
    {
      accountId,
      subEventType: 'account.status',
      actor: SYSTEM_ACTOR,
      payload: { pod_name: name, node: null },
    },
  );
}

async function namesAfter(after: number): Promise<string[]> {
  const { db } = central.ports;
  const upTo = await placeEvents(db, accountId);
  const rows = await readFeed(db, accountId, { after, upTo }, {}, 100);
  return rows.map((row) => JSON.parse(row.payload_json).pod_name);
}

it('places an event that commits late after the events that were already read', async () => {
  const { db } = central.ports;
  const recorded = Promise.withResolvers<void>();
  const commit = Promise.withResolvers<void>();
  const late = db.transaction().execute(async (tx) => {
    await record(tx, 'late');
    recorded.resolve();
    await commit.promise;
  });
  await recorded.promise;
  await record(db, 'early');
  expect(await namesAfter(0)).toEqual(['early']);
  commit.resolve();
  await late;
  expect(await namesAfter(1)).toEqual(['late']);
  const bySeq = await db.selectFrom('events').select('feed_no').orderBy('seq').execute();
  expect(bySeq).toEqual([{ feed_no: 2 }, { feed_no: 1 }]);
});

it('assigns one place to each of many old events, although many readers read at the same time', async () => {
  const { db } = central.ports;
  const count = 1_200;
  await db.transaction().execute(async (tx) => {
    for (let n = 0; n < count; n += 1) await record(tx, String(n));
  });
  const lasts = await Promise.all(Array.from({ length: 8 }, () => placeEvents(db, accountId)));
  expect(lasts).toEqual(lasts.map(() => count));
  const places = await db.selectFrom('events').select('feed_no').orderBy('seq').execute();
  expect(places.map(({ feed_no }) => feed_no)).toEqual(places.map((_, index) => index + 1));
});
