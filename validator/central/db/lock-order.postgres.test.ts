/** Who needs several rows takes them in the order of `lockRow`, shown where one waits for another. */
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { eventually } from '../../../test/fakes/eventually.ts';
import { createPodScene } from '../../../test/fakes/pod-scene.ts';
import { lockRow } from './row-lock.ts';

it('a change of a pod holds its template no sooner than its account', async () => {
  const scene = await createPodScene();
  try {
    const { db } = scene.market.ports;
    const wish = { name: 'mine', docker_image: 'ubuntu', docker_image_tag: '24.04' };
    const { id: templateId } = (await scene.call('POST', '/templates', wish)).body;
    const podId = await scene.running({ template_id: templateId });
    const waiting = sql`select 1 from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
    const { asked } = await db.transaction().execute(async (tx) => {
      await lockRow(tx, 'accounts', scene.account.id);
      const change = scene.call('PUT', `/pods/${podId}`, { docker_image_tag: '26.04' });
      await eventually('the change waits for the account', async () => {
        return (await waiting.execute(db)).rows.length > 0;
      });
      const free = sql`select 1 from templates where id = ${templateId} for no key update nowait`;
      await free.execute(tx);
      return { asked: change };
    });
    expect((await asked).status).toBe(200);
  } finally {
    await scene.close();
  }
});
