/** No environment of a template is stored in clear text, neither in the template nor in a copy of it. */
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { createSealing } from '#shared/signing/sealing.ts';
import { createTestDatabase } from '../../../../test/fakes/scenes/central-database.ts';
import { createTestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { isPostgres } from '../../../database/engine.ts';
import { createCentral } from '../../app.ts';
import { requireOwnSecret } from './sealed-columns.ts';
import type { Database } from './tables.ts';

const WORD = 'hf_a1b2c3d4e5';

/** Every row of every table as text. */
async function dumpOf(db: Database): Promise<string> {
  const names = isPostgres(db)
    ? sql<{ name: string }>`select tablename as name from pg_tables where schemaname = 'public'`
    : sql<{ name: string }>`select name from sqlite_schema where type = 'table'`;
  const tables = (await names.execute(db)).rows;
  const rows = tables.map(({ name }) => sql`select * from ${sql.table(name)}`.execute(db));
  return JSON.stringify(await Promise.all(rows));
}

it('seals templates, pods and stored responses, and sends the environment to the node', async () => {
  // This handle returns sealed columns as they are stored.
  const db = await createTestDatabase();
  const market = await createTestMarket({ db });
  const node = await market.verifiedNode();
  const account = await market.renter();
  const { key: headers } = account;
  const body = { name: 'mine', docker_image: 'ubuntu', environment: { HF_TOKEN: WORD } };
  const template = (await market.call('POST', '/templates', { headers, body })).body;
  const once = { 'idempotency-key': 'once' };
  const wish = { template_id: template.id };
  const rented = await market.rent(account, node.id, wish, once);
  expect(rented.body.template.environment).toEqual({ HF_TOKEN: WORD });
  await market.sync();
  expect(await dumpOf(db)).not.toContain(WORD);
  const again = await market.rent(account, node.id, wish, once);
  expect(again.body).toEqual(rented.body);
  const { id } = rented.body;
  const edited = { environment: { HF_TOKEN: `${WORD}6` } };
  expect((await market.call('PUT', `/pods/${id}`, { headers, body: edited })).status).toBe(200);
  const shown = await market.call('GET', `/templates/${template.id}`, { headers });
  expect(shown.body.environment).toEqual(edited.environment);
  expect(await dumpOf(db)).not.toContain(WORD);
  await market.close();
});

it('seals the rows of earlier versions at the start, and reads rows that are not sealed', async () => {
  // This handle returns sealed columns as they are stored.
  const db = await createTestDatabase();
  const market = await createTestMarket({ db });
  const { key: headers } = await market.renter();
  const body = { name: 'mine', docker_image: 'ubuntu', environment: {} };
  const { id } = (await market.call('POST', '/templates', { headers, body })).body;
  const old = { environment_json: JSON.stringify({ HF_TOKEN: WORD }) };
  await db.updateTable('templates').set(old).where('id', '=', id).execute();
  const environment = async () =>
    (await market.call('GET', `/templates/${id}`, { headers })).body.environment;
  expect(await environment()).toEqual({ HF_TOKEN: WORD });
  await db.deleteFrom('meta').where('name', '=', 'sealed_columns').execute();
  const options = { validators: [], signupCreditUusd: 0, trustedProxies: [] };
  const restarted = await createCentral(market.ports, { ...options, verifyEmailAtSignup: true });
  expect(await dumpOf(db)).not.toContain(WORD);
  expect(await environment()).toEqual({ HF_TOKEN: WORD });
  await restarted.close();
  await market.close();
});

it('rejects a database that was written with another secret, also by an earlier version', async () => {
  const db = await createTestDatabase();
  const market = await createTestMarket({ db });
  const other = createSealing({ key: new Uint8Array(32).fill(2), random: systemRandom });
  const refusal = 'the secret (CENTRAL_SECRET_FILE) is not the one with which this database was';
  await expect(requireOwnSecret(db, other)).rejects.toThrow(refusal);
  const { key: headers } = await market.renter();
  const body = { name: 'mine', docker_image: 'ubuntu', environment: {} };
  await market.call('POST', '/templates', { headers, body });
  await db.deleteFrom('meta').where('name', '=', 'secret_proof').execute();
  await expect(requireOwnSecret(db, other)).rejects.toThrow(refusal);
  await market.close();
});
