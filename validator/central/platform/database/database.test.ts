import { expect, it } from 'vitest';
import { createTestDatabase } from '../../../../test/fakes/scenes/central-database.ts';
import { isUniqueViolation } from '../../../database/engine.ts';

it('creates every table once and rolls back transactions', async () => {
  const db = await createTestDatabase();
  const nonce = { hotkey: 'h', message: 'm', expires_at: 1 };
  await expect(
    db.transaction().execute(async (tx) => {
      await tx.insertInto('login_nonces').values(nonce).execute();
      throw new Error('undo');
    }),
  ).rejects.toThrow('undo');
  expect(await db.selectFrom('login_nonces').selectAll().execute()).toEqual([]);
  await db.insertInto('login_nonces').values(nonce).execute();
  await expect(db.insertInto('login_nonces').values(nonce).execute()).rejects.toSatisfy(
    isUniqueViolation,
  );
  await db.destroy();
});
