/** A change of a pod's state that waits while another transaction settles the pod. */
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../../../../test/fakes/eventually.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { openHolds } from '../../../../test/fakes/scenes/wallet.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import { settleAccounts } from './settlement.service.ts';

let scene: PodScene;
beforeEach(async () => {
  scene = await createPodScene();
});
afterEach(() => scene.close());

it('a removal charges only what is left after the settlement for which it waited', async () => {
  const { db, clock } = scene.market.ports;
  const podId = await scene.running();
  await scene.later(60_000);
  const { removal } = await db.transaction().execute(async (tx) => {
    await lockRow(tx, 'accounts', scene.account.id);
    const waiting = scene.call('DELETE', `/pods/${podId}`);
    await eventually('a transaction that waits for a lock', async () => {
      const locks = sql`select 1 from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
      return (await locks.execute(db)).rows.length > 0;
    });
    await settleAccounts(tx, [scene.account.id], clock.now());
    expect((await openHolds(tx)).size).toBe(0);
    return { removal: waiting };
  });
  expect((await removal).status).toBe(200);
  expect((await openHolds(db)).size).toBe(0);
});
