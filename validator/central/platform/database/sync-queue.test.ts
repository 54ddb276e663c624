import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { createPodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { isPostgres } from '../../../database/engine.ts';
import { syncQueue } from './migrations/0059-sync-queue.ts';
import { POSTGRES_DIALECT, SQLITE_DIALECT } from './sql-dialects.ts';

const TEN_MINUTES_MS = 600_000;

it('the migration adds the nodes of pods that run or have just ended', async () => {
  const scene = await createPodScene();
  const { market, account } = scene;
  const { db } = market.ports;
  const fill = syncQueue(isPostgres(db) ? POSTGRES_DIALECT : SQLITE_DIALECT).at(-1) ?? '';
  const [early, late] = [await market.verifiedNode(), await market.verifiedNode()];
  for (const node of [early, late]) {
    const { id } = (await market.rent(account, node.id)).body;
    await market.sync();
    await scene.remove(id);
    await market.sync();
    await market.clock.advance(TEN_MINUTES_MS + 1);
  }
  await scene.rentOne();
  const present = () => db.selectFrom('sync_turns').selectAll().orderBy('executor_id').execute();
  await db.deleteFrom('sync_turns').execute();
  await sql.raw(fill).execute(db);
  const ids = (await present()).map(({ executor_id: id }) => id);
  expect(ids).toEqual([scene.node.id, late.id].toSorted());
  const before = await present();
  await sql.raw(fill).execute(db);
  expect(await present()).toEqual(before);
  await scene.close();
});
