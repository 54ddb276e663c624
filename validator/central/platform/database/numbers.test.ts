import { expect, it } from 'vitest';
import { createTestDatabase } from '../../../../test/fakes/scenes/central-database.ts';

it('returns integers, sums and counts as numbers, and rejects integers beyond the safe range', async () => {
  const db = await createTestDatabase();
  const atMost = Number.MAX_SAFE_INTEGER;
  await db
    .insertInto('login_nonces')
    .values({ hotkey: 'h', message: 'm', expires_at: atMost })
    .execute();
  const row = await db
    .selectFrom('login_nonces')
    .select((eb) => [
      'expires_at',
      eb.fn.countAll<number>().as('count'),
      eb.fn.sum<number>('expires_at').as('sum'),
    ])
    .groupBy('expires_at')
    .executeTakeFirstOrThrow();
  expect(row).toEqual({ expires_at: atMost, count: 1, sum: atMost });
  await db
    .updateTable('login_nonces')
    .set((eb) => ({ expires_at: eb('expires_at', '+', 1) }))
    .execute();
  const reading = db.selectFrom('login_nonces').selectAll().execute();
  await expect(reading).rejects.toThrow(RangeError);
  await db.destroy();
});
