import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { createTestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { isPostgres } from '../../../database/engine.ts';
import { podImages } from './migrations/0014-pod-images.ts';
import { POSTGRES_DIALECT, SQLITE_DIALECT } from './sql-dialects.ts';

it('derives the image of pods that were rented before the column existed', async () => {
  const market = await createTestMarket();
  const { db } = market.ports;
  const node = await market.verifiedNode({ gpus: 1 });
  const { id } = (await market.rent(await market.renter(), node.id)).body;
  const [, fill = ''] = podImages(isPostgres(db) ? POSTGRES_DIALECT : SQLITE_DIALECT);
  const filled = async (generation: number, image: object) => {
    const row = { generation, spec_json: JSON.stringify({ image }), image_key: null };
    await db.updateTable('pods').set(row).where('id', '=', id).execute();
    await sql.raw(fill).execute(db);
    return (await db.selectFrom('pods').select('image_key').executeTakeFirst())?.image_key;
  };
  expect(await filled(1, { reference: 'a:1' })).toBe('a:1');
  expect(await filled(1, { reference: 'a:1', digest: 'sha256:ab' })).toBe('a:1@sha256:ab');
  expect(await filled(1, { dockerfile: 'FROM a:1' })).toBeNull();
  expect(await filled(2, { reference: 'a:1' })).toBeNull();
  await market.close();
});
