import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { createTestCentral } from '../../../../test/fakes/scenes/central-fixture.ts';
import { isPostgres } from '../../../database/engine.ts';
import { signingSecrets } from '../../delivery/webhooks/webhook-message.ts';
import { replacedSecrets } from './migrations/0035-replaced-secrets.ts';
import { POSTGRES_DIALECT, SQLITE_DIALECT } from './sql-dialects.ts';

const HOUR_MS = 3_600_000;

it('the migration retains the replaced secret of a webhook and its expiry, and migrates webhooks without a replaced secret', async () => {
  const central = await createTestCentral({ webhookTargets: 'loopback' });
  const { db } = central.ports;
  const headers = (await central.signUp()).key;
  const make = async () =>
    (await central.call('POST', '/webhooks', { headers, body: { url: 'http://127.0.0.1:1/' } }))
      .body.id;
  const [rotated, plain] = [await make(), await make()];
  const dialect = isPostgres(db) ? POSTGRES_DIALECT : SQLITE_DIALECT;
  const untilMs = central.clock.now() + HOUR_MS;
  for (const statement of [
    'alter table webhooks drop column replaced_json',
    'alter table webhooks add column previous_sealed text',
    `alter table webhooks add column previous_until ${dialect.int}`,
    `update webhooks set previous_sealed = 'old_-1', previous_until = ${untilMs} where id = '${rotated}'`,
    ...replacedSecrets(dialect),
  ]) {
    await sql.raw(statement).execute(db);
  }
  const rows = await db.selectFrom('webhooks').selectAll().execute();
  const byId = new Map(rows.map((row) => [row.id, row]));
  const secrets = (id: string, atMs: number) => {
    const row = byId.get(id);
    return row === undefined ? [] : signingSecrets(row, atMs).slice(1);
  };
  expect(secrets(rotated, untilMs - 1)).toEqual(['old_-1']);
  expect(secrets(rotated, untilMs)).toEqual([]);
  expect([rows.length, secrets(plain, 0)]).toEqual([2, []]);
  await central.close();
});
