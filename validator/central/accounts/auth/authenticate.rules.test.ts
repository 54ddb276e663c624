/** The authentication rules `portal` and `validator`, on a separate server. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createHttpServer, type HttpServer } from '#shared/http/server.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { canonicalRequest, SIGNATURE_HEADERS, sha256Hex } from '#shared/signing/signed-request.ts';
import { createSigner, type LocalSigner, toHex } from '#shared/signing/sr25519.ts';
import { createManualClock, type ManualClock } from '../../../../test/fakes/manual-clock.ts';
import { createTestDatabase } from '../../../../test/fakes/scenes/central-database.ts';
import { keyBudgets } from '../../money/metering/key-budget-change.ts';
import type { Database } from '../../platform/database/tables.ts';
import { actorOf, providerOf, userIfAny, userOf, validatorOf } from '../../platform/identity.ts';
import { createProviderTokens } from '../../providers/provider-token.service.ts';
import { type ApiKeys, createApiKeys } from '../api-keys/api-key.service.ts';
import { createApiKeySecrets } from './api-key-secret.ts';
import { installAuthentication } from './authenticate.ts';
import { createSessions, type Sessions } from './session.ts';
import { createStreamTickets } from './stream-ticket.ts';
import { createUserCredentials } from './user-credentials.ts';
import { createValidatorSignatures } from './validator-signature.ts';

const secret = new Uint8Array(32).fill(1);
const validator = createSigner(new Uint8Array(32).fill(2));
const stranger = createSigner(new Uint8Array(32).fill(3));
const PROVIDER_ID = '11111111-1111-4111-8111-111111111111';
const SEVEN_DAYS_MS = 7 * 24 * 60 * 60 * 1000;

let db: Database;
let clock: ManualClock;
let sessions: Sessions;
let apiKeys: ApiKeys;
let server: HttpServer;

beforeEach(async () => {
  clock = createManualClock();
  db = await createTestDatabase();
  sessions = createSessions({ clock, random: systemRandom, secret });
  const log = createLog({ name: 'test', level: 'silent' });
  const validators = createValidatorSignatures({
    db,
    clock,
    log,
    audience: 'central',
    validators: [validator.hotkey],
  });
  const secrets = createApiKeySecrets({ random: systemRandom, secret });
  const random = systemRandom;
  const keys = { db, clock, random, log, secrets, retrievable: true, budgets: keyBudgets };
  apiKeys = createApiKeys(keys);
  const users = createUserCredentials({ db, sessions, apiKeys });
  const { verifyBody } = validators;
  server = createHttpServer({ log, clock, random, bodyLimitBytes: 10_000, verifyBody });
  const tickets = createStreamTickets({ db, clock, random, secret });
  const others = {
    validatorOf: async () => null,
    providerTokens: createProviderTokens({ db, clock, random }),
  };
  installAuthentication(server, { db, sessions, users, validators, tickets, ...others });
  server.get('/portal', { config: { auth: 'portal' } }, async (request) => ({
    hotkey: providerOf(request).hotkey,
  }));
  server.get('/who', { config: { auth: 'user' } }, async (request) => ({
    user: userOf(request),
    actor: actorOf(request),
  }));
  server.get('/open', { config: { auth: 'none' } }, async (request) => ({
    user: userIfAny(request) !== null,
  }));
  server.post(
    '/validator/:validator_hotkey/x',
    { config: { auth: 'validator' } },
    async (request) => ({
      hotkey: validatorOf(request).hotkey,
    }),
  );
  server.get('/internal', { config: { auth: 'validator' } }, async () => ({ ok: true }));
});
afterEach(async () => {
  await server.close();
  await db.destroy();
});

it('rejects a route without an authentication rule', () => {
  expect(() => server.get('/forgotten', async () => ({}))).toThrow(/GET \/forgotten has no config/);
});

it('passes handlers the identity, credential, source and client version', async () => {
  const account = {
    id: PROVIDER_ID,
    email: 'a@example.com',
    email_norm: 'a@example.com',
    email_verified_at: null,
    password_hash: '',
    name: 'a',
    default_template_id: null,
    referral_code: 'code',
    created_at: 0,
    updated_at: 0,
  };
  await db.insertInto('accounts').values(account).execute();
  const { key, row } = await apiKeys.add(db, account.id, { name: 'ci', expires_at: undefined });
  const { token, sessionId } = await sessions.issue(db, 'user', account.id);
  const who = async (headers: Record<string, string | string[]>) => {
    const sent = { 'x-request-id': 'request-1', ...headers };
    return (await server.inject({ url: '/who', headers: sent })).json();
  };
  const byKey = { 'x-api-key': key };
  expect(await who(byKey)).toEqual({
    user: {
      kind: 'user',
      accountId: account.id,
      credential: { type: 'api_key', keyId: row.id, keyName: 'ci', scopes: null },
      source: 'programmatic',
      clientVersion: null,
    },
    actor: { auth: 'api_key', apiKeyId: row.id, requestId: 'request-1' },
  });
  const bySession = { authorization: `Bearer ${token}`, 'x-lium-client-version': '1.2.3' };
  expect(await who(bySession)).toEqual({
    user: {
      kind: 'user',
      accountId: account.id,
      credential: { type: 'session', sessionId },
      source: 'ui',
      clientVersion: '1.2.3',
    },
    actor: { auth: 'session', apiKeyId: null, requestId: 'request-1' },
  });
  expect((await who({ ...byKey, 'X-Source': 'CLI' })).user.source).toBe('cli');
  expect((await who({ ...byKey, 'X-Source': ['cli', 'cli'] })).user.source).toBe('programmatic');
  expect((await who({ ...byKey, ...bySession })).user.source).toBe('programmatic');
});

describe('portal', () => {
  const statusFor = async (authorization?: string) => {
    const headers = authorization === undefined ? {} : { authorization };
    const response = await server.inject({ url: '/portal', headers });
    return [response.statusCode, response.json().error?.code];
  };

  beforeEach(async () => {
    await db
      .insertInto('providers')
      .values({
        id: PROVIDER_ID,
        hotkey: stranger.hotkey,
        coldkey: null,
        email: null,
        opted_in: 0,
        banned_at: null,
        created_at: 0,
        updated_at: 0,
      })
      .execute();
  });

  it('accepts only portal tokens, and distinguishes expired from invalid tokens', async () => {
    const { token, sessionId } = await sessions.issue(db, 'portal', PROVIDER_ID);
    const userToken = (await sessions.issue(db, 'user', PROVIDER_ID)).token;
    const orphan = (await sessions.issue(db, 'portal', 'nobody')).token;
    expect(await statusFor(`Bearer ${token}`)).toEqual([200, undefined]);
    expect(await statusFor()).toEqual([401, 'unauthorized']);
    expect(await statusFor(`Bearer ${userToken}`)).toEqual([401, 'unauthorized']);
    expect(await statusFor(`Bearer ${orphan}`)).toEqual([401, 'unauthorized']);
    expect(await statusFor(`Bearer ${token.slice(0, -2)}`)).toEqual([401, 'unauthorized']);
    await clock.advance(SEVEN_DAYS_MS);
    expect(await statusFor(`Bearer ${token}`)).toEqual([419, 'client_error']);
    const fresh = await sessions.issue(db, 'portal', PROVIDER_ID);
    expect(await sessions.revoke(db, 'portal', PROVIDER_ID, fresh.sessionId)).toBe(true);
    expect(await statusFor(`Bearer ${fresh.token}`)).toEqual([401, 'unauthorized']);
    expect(fresh.sessionId).not.toBe(sessionId);
  });

  it('does not identify a portal session as a user on open routes', async () => {
    const { token } = await sessions.issue(db, 'portal', PROVIDER_ID);
    const headers = { authorization: `Bearer ${token}` };
    expect((await server.inject({ url: '/open', headers })).json()).toEqual({ user: false });
  });
});

describe('validator', () => {
  const PATH = `/validator/${validator.hotkey}/x`;

  function signed(signer: LocalSigner, atMs: number): Record<string, string> {
    const timestamp = String(Math.floor(atMs / 1000));
    const signature = toHex(signer.sign(new TextEncoder().encode(timestamp)));
    return { hotkey: signer.hotkey, timestamp, signature };
  }

  function canonically(signer: LocalSigner, url: string, body: string, audience = 'central') {
    const parts = {
      method: 'POST',
      rawPath: url,
      rawQuery: '',
      bodySha256: sha256Hex(body),
      timestampMs: clock.now(),
      nonce: Buffer.from(systemRandom.bytes(16)).toString('base64url'),
      audience,
      signer: signer.hotkey,
    };
    return {
      [SIGNATURE_HEADERS.signer]: parts.signer,
      [SIGNATURE_HEADERS.timestamp]: String(parts.timestampMs),
      [SIGNATURE_HEADERS.nonce]: parts.nonce,
      [SIGNATURE_HEADERS.audience]: audience,
      [SIGNATURE_HEADERS.bodySha256]: parts.bodySha256,
      [SIGNATURE_HEADERS.signature]: toHex(
        signer.sign(new TextEncoder().encode(canonicalRequest(parts))),
      ),
    };
  }

  async function post(url: string, headers: Record<string, string>, payload?: string) {
    const sent =
      payload === undefined
        ? { headers }
        : { payload, headers: { ...headers, 'content-type': 'application/json' } };
    const response = await server.inject({ method: 'POST', url, ...sent });
    return [response.statusCode, response.json().error?.code];
  }

  it('accepts a recent timestamp signed by a known validator', async () => {
    const now = clock.now();
    const good = signed(validator, now);
    expect(await post(PATH, good)).toEqual([200, undefined]);
    expect(await post(PATH, signed(validator, now - 300_000))).toEqual([200, undefined]);
    const unauthorized = [401, 'unauthorized'];
    expect(await post(PATH, {})).toEqual(unauthorized);
    expect(await post(PATH, signed(validator, now - 302_000))).toEqual(unauthorized);
    expect(await post(PATH, signed(validator, now + 302_000))).toEqual(unauthorized);
    expect(await post(PATH, signed(stranger, now))).toEqual(unauthorized);
    const forged = { ...signed(stranger, now), hotkey: validator.hotkey };
    expect(await post(PATH, forged)).toEqual(unauthorized);
    expect(await post(PATH, { ...good, timestamp: `${good['timestamp']}.5` })).toEqual(
      unauthorized,
    );
    expect(await post(PATH, { ...good, signature: 'zz' })).toEqual(unauthorized);
    expect(await post(`/validator/${stranger.hotkey}/x`, good)).toEqual([403, 'forbidden']);
    expect(await post('/validator/5Gno/x', good)).toEqual([422, 'validation_error']);
    expect(await post('/validator/5Gno/x', {})).toEqual(unauthorized);
    const internal = await server.inject({ url: '/internal', headers: signed(validator, now) });
    expect(internal.statusCode).toBe(200);
  });

  it('also verifies the canonical signature if the request has one', async () => {
    const body = '{"a":1}';
    const legacy = () => signed(validator, clock.now());
    const both = { ...legacy(), ...canonically(validator, PATH, body) };
    expect(await post(PATH, both, body)).toEqual([200, undefined]);
    const refused = [401, 'auth_failed'];
    expect(await post(PATH, { ...both, ...legacy() }, body)).toEqual(refused);
    const fresh = () => ({ ...legacy(), ...canonically(validator, PATH, body) });
    expect(await post(PATH, fresh(), '{"a":2}')).toEqual(refused);
    expect(await post(PATH, fresh(), '{"a":')).toEqual(refused);
    expect(await post(PATH, fresh())).toEqual(refused);
    const partial = { ...legacy(), [SIGNATURE_HEADERS.nonce]: 'x' };
    expect(await post(PATH, partial, body)).toEqual(refused);
    const foreign = { ...legacy(), ...canonically(validator, PATH, body, 'another') };
    expect(await post(PATH, foreign, body)).toEqual(refused);
    const mixed = { ...legacy(), ...canonically(stranger, PATH, body) };
    expect(await post(PATH, mixed, body)).toEqual(refused);
    const withoutLegacy = canonically(validator, PATH, body);
    expect(await post(PATH, withoutLegacy, body)).toEqual([401, 'unauthorized']);
  });
});
