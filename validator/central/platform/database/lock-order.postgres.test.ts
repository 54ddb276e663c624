/**
 * Transactions lock several rows in the order that `lockRow` documents, and read what they change under the lock. In each
 * test one transaction waits for another.
 */
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../../../../test/fakes/eventually.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { openHolds } from '../../../../test/fakes/scenes/wallet.ts';
import { settleAccounts } from '../../money/metering/settlement.service.ts';
import { lockRow, lockRows } from './transactions.ts';

let scene: PodScene;
beforeEach(async () => {
  scene = await createPodScene();
});
afterEach(() => scene.close());

/** Resolves when a transaction waits for a lock. */
function lockIsAwaited(): Promise<boolean> {
  const waiting = sql`select 1 from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`;
  const look = async () => (await waiting.execute(scene.market.ports.db)).rows.length > 0;
  return eventually('a transaction that waits for a lock', look);
}

it('locks the account before the template when a pod is edited', async () => {
  const { db } = scene.market.ports;
  const template = { name: 'mine', docker_image: 'ubuntu', docker_image_tag: '24.04' };
  const { id: templateId } = (await scene.call('POST', '/templates', template)).body;
  const podId = await scene.running({ template_id: templateId });
  const { response } = await db.transaction().execute(async (tx) => {
    await lockRow(tx, 'accounts', scene.account.id);
    const change = scene.call('PUT', `/pods/${podId}`, { docker_image_tag: '26.04' });
    await lockIsAwaited();
    const free = sql`select 1 from templates where id = ${templateId} for no key update nowait`;
    await free.execute(tx);
    return { response: change };
  });
  expect((await response).status).toBe(200);
});

it('locks several rows in the order of their ids', async () => {
  const { db } = scene.market.ports;
  const [first = '', second = ''] = [scene.account.id, (await scene.market.renter()).id].toSorted();
  const { locked } = await db.transaction().execute(async (tx) => {
    await lockRow(tx, 'accounts', first);
    const both = db.transaction().execute((other) => lockRows(other, 'accounts', [second, first]));
    await lockIsAwaited();
    const free = sql`select 1 from accounts where id = ${second} for no key update nowait`;
    await free.execute(tx);
    return { locked: both };
  });
  await locked;
});

it('charges a removed pod only what is left after the settlement for which the removal waited', async () => {
  const { db, clock } = scene.market.ports;
  const podId = await scene.running();
  await scene.later(60_000);
  const { removal } = await db.transaction().execute(async (tx) => {
    await lockRow(tx, 'accounts', scene.account.id);
    const waiting = scene.remove(podId);
    await lockIsAwaited();
    await settleAccounts(tx, [scene.account.id], clock.now());
    expect((await openHolds(tx)).size).toBe(0);
    return { removal: waiting };
  });
  expect((await removal).status).toBe(200);
});
