/** The console's client and its streams against a real central API. */
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { followAccountEvents } from '../../../validator/console/api/account-events.ts';
import type { AccountEvent } from '../../../validator/console/api/api.gen.ts';
import { type Client, createClient } from '../../../validator/console/api/client.ts';
import { ApiFailure } from '../../../validator/console/api/failure.ts';
import { eventually } from '../../fakes/eventually.ts';
import type { TestAccount } from '../../fakes/scenes/central-fixture.ts';
import { createTestMarket, type TestMarket } from '../../fakes/scenes/market-fixture.ts';

let market: TestMarket;
let origin: string;
let account: TestAccount;
let token: string | null;
let client: Client;
const onExpired = vi.fn();

beforeAll(async () => {
  market = await createTestMarket();
  origin = await market.server.listen({ host: '127.0.0.1', port: 0 });
  account = await market.renter();
});
afterAll(() => market.close());
beforeEach(() => {
  onExpired.mockReset();
  token = account.token;
  client = createClient({ fetch, origin, token: () => token, onExpired });
});

/** The failure of a request. */
async function failureIn(request: Promise<unknown>): Promise<ApiFailure> {
  const error = await request.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ApiFailure)) throw new Error(`no failure: ${error}`);
  return error;
}

it('sends parameters, a body and the session', async () => {
  const { api } = client;
  expect((await api('GET /users/me')).email).toBe(account.email);
  const created = await api('POST /secrets', { body: { name: 'token', value: 'x' } });
  const removed = await api('DELETE /secrets/{id}', { params: { id: created.id } });
  expect(removed.name).toBe('token');
  expect((await api('GET /pods/history', { query: { page: 1, limit: 5 } })).limit).toBe(5);
});

it('returns code, hint, request id and the problems of fields', async () => {
  const { facts } = await failureIn(client.api('POST /volumes', { body: { name: '' } }));
  expect(facts).toMatchObject({
    status: 422,
    code: expect.stringMatching(/^\w+$/),
    hint: expect.stringMatching(/./),
    requestId: expect.stringMatching(/./),
  });
  expect(facts.problems.map(({ field }) => field)).toContain('body.name');
  expect(facts.problems).toContainEqual({ field: 'body.name', message: 'Must not be empty' });
});

it('reports a rejected session once per request, and none for a request without a session', async () => {
  token = 'expired';
  expect((await failureIn(client.api('GET /users/me'))).isExpired).toBe(true);
  expect(onExpired.mock.calls).toEqual([['expired']]);
  token = null;
  await failureIn(client.api('GET /users/me'));
  expect(onExpired).toHaveBeenCalledTimes(1);
});

it('sends no session with a ticket, so that a rejected ticket does not end the session', async () => {
  const { facts } = await failureIn(
    client.open('/api/auth/exchange-ticket', {
      method: 'POST',
      credentials: 'omit',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ ticket: 'used' }),
    }),
  );
  expect(facts.code).toBe('ticket_invalid');
  expect(onExpired).not.toHaveBeenCalled();
});

it('reports a server that does not answer', async () => {
  const lost = createClient({ fetch, origin: 'http://127.0.0.1:1', token: () => null });
  expect((await failureIn(lost.api('GET /version'))).facts.code).toBe('unreachable');
});

it('follows events, and resumes after an interruption without a lost or repeated event', async () => {
  const events: AccountEvent[] = [];
  const gone = new AbortController();
  let connections = 0;
  const interrupted = createClient({
    origin,
    token: () => token,
    fetch: async (input, init) => {
      connections += 1;
      const cut = new AbortController();
      const ended = AbortSignal.any([cut.signal, ...(init?.signal ? [init.signal] : [])]);
      const response = await fetch(input, { ...init, signal: ended });
      cuts.push(() => cut.abort());
      return response;
    },
  });
  const cuts: (() => void)[] = [];
  const following = followAccountEvents({
    client: interrupted,
    signal: gone.signal,
    sleep: async () => undefined,
    onEvent: (event) => void events.push(event),
  });
  await eventually('the first connection', () => cuts.length === 1);
  const node = await market.verifiedNode();
  await market.rent(account, node.id);
  await eventually('the first event', () => events.length > 0);
  cuts.at(-1)?.();
  await eventually('the second connection', () => cuts.length === 2);
  const before = events.length;
  await market.sync();
  await eventually('a later event', () => events.length > before);
  gone.abort();
  await following;
  const stored = await client.api('GET /users/me/events', { query: { limit: 100 } });
  const expected = stored.toReversed().map(({ id }) => id);
  expect(events.map(({ id }) => id)).toEqual(expected.slice(-events.length));
  expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
  expect(connections).toBe(2);
});
