import { afterEach, beforeEach, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { eventually } from '../../../../test/fakes/eventually.ts';
import { createTestDatabase } from '../../../../test/fakes/scenes/central-database.ts';
import {
  createTestCentral,
  type TestAccount,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { watchDatabase } from '../../../../test/fakes/scenes/watched-database.ts';
import { keyBudgets } from '../../money/metering/key-budget-change.ts';
import { createApiKeys } from '../api-keys/api-key.service.ts';
import { createApiKeySecrets } from './api-key-secret.ts';
import { createCredentialWatch } from './credential-watch.ts';
import { createSessions } from './session.ts';

/** Longest time between a revocation and the end of a stream. */
const PROMISED_MS = 5_000;
const NEVER = new AbortController().signal;

let database: ReturnType<typeof watchDatabase>;
let central: TestCentral;
let account: TestAccount;
let stopping: AbortController;
beforeEach(async () => {
  database = watchDatabase(await createTestDatabase());
  central = await createTestCentral({ db: database.db });
  account = await central.signUp();
  stopping = new AbortController();
});
afterEach(async () => {
  stopping.abort();
  await central.close();
});

function createWatch() {
  const { db, clock, random, secret } = central.ports;
  const log = createLog({ name: 'test', level: 'silent' });
  const secrets = createApiKeySecrets({ random, secret });
  return createCredentialWatch({
    db,
    clock,
    stopping: stopping.signal,
    log,
    sessions: createSessions({ clock, random, secret }),
    apiKeys: createApiKeys({
      db,
      clock,
      random,
      log,
      secrets,
      retrievable: true,
      budgets: keyBudgets,
    }),
  });
}

async function ownKey() {
  const [{ id }] = (await central.call('GET', '/keys', { headers: account.session })).body;
  return { type: 'api_key', keyId: id as string, keyName: 'default', scopes: null } as const;
}

async function ownSession() {
  const { id } = await database.db.selectFrom('sessions').select('id').executeTakeFirstOrThrow();
  return { type: 'session', sessionId: id } as const;
}

async function endsInTime(revoked: AbortSignal): Promise<void> {
  await central.clock.advance(PROMISED_MS);
  await eventually('the end', () => revoked.aborted);
}

it.each<[string, object]>([
  ['deactivated', { is_active: false }],
  ['expired', { expires_at: '2027-01-15T08:00:03Z' }],
])('ends only the streams of a key that was %s', async (_, change) => {
  const watch = createWatch();
  const [key, session] = [await ownKey(), await ownSession()];
  const [byKey, bySession] = [watch.revoked(key, NEVER), watch.revoked(session, NEVER)];
  await central.call('PATCH', `/keys/${key.keyId}`, { headers: account.session, body: change });
  await endsInTime(byKey);
  expect(bySession.aborted).toBe(false);
});

it('ends streams of a revoked session, and all streams of a deleted account', async () => {
  const watch = createWatch();
  const byKey = watch.revoked(await ownKey(), NEVER);
  const bySession = watch.revoked(await ownSession(), NEVER);
  await database.db.updateTable('sessions').set({ revoked_at: 1 }).execute();
  await endsInTime(bySession);
  expect(byKey.aborted).toBe(false);
  const { token } = (await central.call('POST', '/users/login', { body: account })).body;
  const headers = { authorization: `Bearer ${token}` };
  expect((await central.call('DELETE', '/users/me', { headers })).status).toBe(200);
  await endsInTime(byKey);
});

it('polls once for all streams, and stops without streams', async () => {
  const watch = createWatch();
  const over = new AbortController();
  const [key, session] = [await ownKey(), await ownSession()];
  const all = Array.from({ length: 200 }, (_, n) =>
    watch.revoked(n % 2 ? key : session, over.signal),
  );
  const before = database.queries();
  await central.clock.advance(PROMISED_MS);
  await eventually('the look', () => database.queries() >= before + 2);
  over.abort();
  for (let n = 0; n < 3; n += 1) await central.clock.advance(PROMISED_MS);
  expect(database.queries()).toBe(before + 2);
  expect(all.some(({ aborted }) => aborted)).toBe(false);
  await central.call('DELETE', `/keys/${key.keyId}`, { headers: account.session });
  expect(watch.revoked(key, over.signal).aborted).toBe(false);
  await endsInTime(watch.revoked(key, NEVER));
});

it('keeps streams open while the database fails, and continues to poll', async () => {
  const watch = createWatch();
  const key = await ownKey();
  const byKey = watch.revoked(key, NEVER);
  await central.call('DELETE', `/keys/${key.keyId}`, { headers: account.session });
  database.fail();
  const before = database.queries();
  await central.clock.advance(PROMISED_MS);
  await eventually('the look', () => database.queries() > before);
  expect(byKey.aborted).toBe(false);
  database.release();
  await endsInTime(byKey);
});
