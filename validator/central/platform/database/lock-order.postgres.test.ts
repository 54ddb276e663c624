/** Transactions lock several rows in the order of `lockRow`, shown by one that waits for another. */
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../../../../test/fakes/eventually.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { lockRow, lockRows } from './transactions.ts';

let scene: PodScene;
beforeEach(async () => {
  scene = await createPodScene();
});
afterEach(() => scene.close());

/** Resolves when a transaction waits for a lock that this test holds. */
function somebodyWaits(): Promise<boolean> {
  const waiting = sql`select 1 from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`;
  const look = async () => (await waiting.execute(scene.market.ports.db)).rows.length > 0;
  return eventually('somebody waits', look);
}

it('locks the account before the template when a pod is edited', async () => {
  const { db } = scene.market.ports;
  const wish = { name: 'mine', docker_image: 'ubuntu', docker_image_tag: '24.04' };
  const { id: templateId } = (await scene.call('POST', '/templates', wish)).body;
  const podId = await scene.running({ template_id: templateId });
  const { asked } = await db.transaction().execute(async (tx) => {
    await lockRow(tx, 'accounts', scene.account.id);
    const change = scene.call('PUT', `/pods/${podId}`, { docker_image_tag: '26.04' });
    await somebodyWaits();
    const free = sql`select 1 from templates where id = ${templateId} for no key update nowait`;
    await free.execute(tx);
    return { asked: change };
  });
  expect((await asked).status).toBe(200);
});

it('locks several rows in the order of their ids', async () => {
  const { db } = scene.market.ports;
  const [first = '', second = ''] = [scene.account.id, (await scene.market.renter()).id].toSorted();
  const { asked } = await db.transaction().execute(async (tx) => {
    await lockRow(tx, 'accounts', first);
    const both = db.transaction().execute((other) => lockRows(other, 'accounts', [second, first]));
    await somebodyWaits();
    const free = sql`select 1 from accounts where id = ${second} for no key update nowait`;
    await free.execute(tx);
    return { asked: both };
  });
  await asked;
});
