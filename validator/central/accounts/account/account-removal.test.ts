import { afterEach, beforeEach, expect, it } from 'vitest';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import {
  createTestMarket,
  PUBLIC_KEY,
  type TestMarket,
} from '../../../../test/fakes/scenes/market-fixture.ts';
import { moveMachineRequest } from '../../market/machine-requests/machine-request.store.ts';
import { CreateTemplate } from '../../market/templates/template.schemas.ts';
import { createTemplates } from '../../market/templates/template.service.ts';
import { keyBudgets } from '../../money/metering/key-budget-change.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import { CreateApiKey } from '../api-keys/api-key.schemas.ts';
import { createApiKeys } from '../api-keys/api-key.service.ts';
import { createApiKeySecrets } from '../auth/api-key-secret.ts';
import { createDockerCredentials } from '../registry-logins/docker-credential.service.ts';
import { CreateSshKey } from '../ssh-keys/ssh-key.schemas.ts';
import { createSshKeys } from '../ssh-keys/ssh-key.service.ts';

let market: TestMarket;
let account: TestAccount;
beforeEach(async () => {
  market = await createTestMarket();
  account = await market.renter();
});
afterEach(() => market.close());

const remove = (headers: Record<string, string> = account.session) =>
  market.call('DELETE', '/users/me', { headers });

it('rejects a removal by API key, and by session while pods exist, and names the pods', async () => {
  const byKey = await remove(account.key);
  expect([byKey.status, byKey.body.error.code]).toEqual([403, 'forbidden']);
  const node = await market.verifiedNode();
  const { body: pod } = await market.rent(account, node.id, { pod_name: 'training' });
  const refused = await remove();
  expect([refused.status, refused.body.error.code]).toEqual([400, 'bad_request']);
  expect(refused.body.message).toBe(`The account still has pods: training (${pod.id})`);
  expect(refused.body.details).toEqual({ pods: [{ id: pod.id, pod_name: 'training' }] });
  expect((await market.call('GET', '/users/me', { headers: account.key })).status).toBe(200);
});

it('revokes every credential, deletes personal data and keeps events', async () => {
  const node = await market.verifiedNode();
  const { body: pod } = await market.rent(account, node.id);
  await market.call('DELETE', `/pods/${pod.id}`, { headers: account.key });
  const secrets = { name: 'Ada Lovelace', company_name: 'Analytical Engines' };
  await market.call('PUT', '/users/me', { headers: account.key, body: secrets });
  const template = { name: 'mine', docker_image: 'ubuntu', environment: { TOKEN: 'hush' } };
  await market.call('POST', '/templates', { headers: account.key, body: template });
  await market.call('POST', '/users/request-reset-password', { body: { email: account.email } });
  const { db } = market.ports;
  const money = async () => [
    await db.selectFrom('transfers').selectAll().execute(),
    await db.selectFrom('ledger_accounts').selectAll().orderBy('id').execute(),
  ];
  const before = await money();
  const { status, body } = await remove();
  expect([status, body]).toEqual([200, { success: true, id: account.id }]);
  expect(await money()).toEqual(before);

  for (const headers of [account.key, account.session]) {
    const answer = await market.call('GET', '/users/me', { headers });
    expect([answer.status, answer.body.error.code]).toEqual([401, 'unauthorized']);
  }
  const { email, password } = account;
  expect((await market.call('POST', '/users/login', { body: { email, password } })).status).toBe(
    401,
  );
  const ghost = { email: `deleted:${account.id}`, password: '' };
  expect((await market.call('POST', '/users/login', { body: ghost })).status).toBe(401);

  for (const table of ['ssh_keys', 'mails', 'account_tokens'] as const) {
    expect([table, await db.selectFrom(table).selectAll().execute()]).toEqual([table, []]);
  }
  const kept = JSON.stringify([
    await db.selectFrom('accounts').selectAll().execute(),
    await db.selectFrom('templates').selectAll().where('account_id', '=', account.id).execute(),
    await db.selectFrom('api_keys').selectAll().execute(),
  ]);
  for (const personal of ['Ada', 'Analytical', email, 'hush']) expect(kept).not.toContain(personal);
  const events = await db.selectFrom('events').select('event_type').execute();
  expect(events.map(({ event_type: type }) => type)).toEqual(
    expect.arrayContaining(['pod-rent', 'pod-delete', 'account']),
  );
});

it('deletes bookmarks and feedback, and closes machine requests', async () => {
  const node = await market.verifiedNode();
  const post = (path: string, body: object) =>
    market.call('POST', path, { headers: account.key, body });
  await post('/bookmark', { executor_id: node.id });
  const request = { gpu_class: 'H100', notes: 'call Ada' };
  const open = (await post('/machine-requests', request)).body.id;
  const done = (await post('/machine-requests', { ...request, gpu_count: 2 })).body.id;
  const { db } = market.ports;
  await moveMachineRequest(db, done, 'fulfilled', { fulfilled_executor_id: node.id });
  expect((await remove()).status).toBe(200);
  expect(await db.selectFrom('bookmarks').selectAll().execute()).toEqual([]);
  const left = await db
    .selectFrom('machine_requests')
    .select(['id', 'state', 'notes', 'notify'])
    .execute();
  expect(left).toHaveLength(2);
  expect(left).toEqual(
    expect.arrayContaining([
      { id: open, state: 'cancelled', notes: null, notify: 0 },
      { id: done, state: 'fulfilled', notes: null, notify: 0 },
    ]),
  );
});

it('removes the pods of a deleted account from their nodes', async () => {
  const node = await market.verifiedNode();
  const { body: pod } = await market.rent(account, node.id);
  await market.sync();
  await market.call('DELETE', `/pods/${pod.id}`, { headers: account.key });
  expect((await remove()).status).toBe(200);
  await market.sync();
  await market.sync();
  const { db } = market.ports;
  const row = await db.selectFrom('pods').select('ended_at').executeTakeFirstOrThrow();
  expect(row.ended_at).not.toBeNull();
});

it('stores nothing for requests that were authenticated before the deletion', async () => {
  const { db, clock, random, log, secret } = market.ports;
  const caller: UserIdentity = {
    kind: 'user',
    accountId: account.id,
    source: 'programmatic',
    clientVersion: null,
    credential: { type: 'session', sessionId: random.uuid() },
  };
  const deps = { db, clock, random };
  const secrets = createApiKeySecrets({ random, secret });
  const keys = { ...deps, log, secrets, retrievable: true, budgets: keyBudgets };
  await remove();
  const inTransaction = <T>(work: (tx: Db) => Promise<T>) => db.transaction().execute(work);
  const late = await Promise.allSettled([
    inTransaction((tx) =>
      createApiKeys(keys).createIn(tx, caller, CreateApiKey.parse({ name: 'late' })),
    ),
    createSshKeys(deps).create(
      caller,
      CreateSshKey.parse({ name: 'late', public_key: PUBLIC_KEY }),
    ),
    inTransaction((tx) =>
      createDockerCredentials({ ...deps, secret }).createIn(tx, caller, {
        name: 'late',
        docker_username: 'ada',
        docker_password: 'hush',
      }),
    ),
    inTransaction(
      await createTemplates({ ...deps, checkRegistry: async () => undefined }).creation(
        caller,
        CreateTemplate.parse({ name: 'late', docker_image: 'ubuntu' }),
      ),
    ),
  ]);
  expect(late).toMatchObject(
    Array.from(late, () => ({ status: 'rejected', reason: { code: 'unauthorized' } })),
  );
  const active = db.selectFrom('api_keys').select('id').where('is_active', '=', 1);
  expect(await active.execute()).toEqual([]);
});

it('frees the address for an unrelated new account', async () => {
  await remove();
  const body = { email: account.email, password: 'another horse' };
  const again = await market.call('POST', '/users', { body });
  expect(again.status).toBe(200);
  expect(again.body.user.id).not.toBe(account.id);
});

it('either deletes the account or rents when both happen at once', async () => {
  const node = await market.verifiedNode();
  const [removed, rented] = await Promise.all([remove(), market.rent(account, node.id)]);
  expect([removed.status, rented.status]).toSatisfy(
    ([one, other]) => (one === 200 && other === 401) || (one === 400 && other === 200),
  );
});
