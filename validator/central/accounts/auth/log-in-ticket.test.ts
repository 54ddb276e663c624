import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestAccount,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { createTestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { DEFAULT_LIMITS } from '../../platform/rate-limits/policies.ts';
import { LOG_IN_TICKET_LIFETIME_MS, MAX_LOG_IN_TICKETS } from './log-in-ticket.ts';

let central: TestCentral;
let account: TestAccount;
beforeEach(async () => {
  central = await createTestCentral();
  account = await central.signUp();
});
afterEach(() => central.close());

const create = (headers: Record<string, string> = account.session) =>
  central.call('POST', '/auth/tickets', { headers });
const exchange = (ticket: unknown, at = central) =>
  at.call('POST', '/auth/exchange-ticket', { body: { ticket } });
const rows = () => central.ports.db.selectFrom('log_in_tickets').selectAll().execute();

it('exchanges a ticket once for a session of the account', async () => {
  const created = (await create()).body;
  expect(created).toMatchObject({ expires_in_seconds: 3_600 });
  const { status, body } = await exchange(created.ticket);
  expect([status, body.user.id]).toEqual([200, account.id]);
  const session = { authorization: `Bearer ${body.token}` };
  expect((await central.call('GET', '/users/me', { headers: session })).body.email).toBe(
    account.email,
  );
  const refused = await exchange(created.ticket);
  expect(refused).toMatchObject({
    status: 401,
    body: {
      error: { code: 'ticket_invalid', hint: expect.stringContaining('POST /auth/tickets') },
    },
  });
  expect((await exchange('unknown')).body.error.code).toBe('ticket_invalid');
});

it('gives one of several concurrent requests a session, also in two processes', async () => {
  const { ticket } = (await create()).body;
  const other = await createTestMarket({ db: central.ports.db, clock: central.clock });
  const answers = await Promise.all(
    [central, other, central, other].map((at) => exchange(ticket, at)),
  );
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 401, 401, 401]);
  const sessions = await central.ports.db.selectFrom('sessions').selectAll().execute();
  expect(sessions).toHaveLength(2);
  await other.central.close();
});

it('does not use a ticket in a GET, or in a request that the ticket does not belong to', async () => {
  const { ticket } = (await create()).body;
  for (const method of ['GET', 'HEAD'] as const) {
    const { status } = await central.server
      .inject({
        method,
        url: `/api/auth/exchange-ticket?ticket=${ticket}`,
      })
      .then(({ statusCode: status }) => ({ status }));
    expect(status).toBe(405);
  }
  const portal = await central.server.inject({
    method: 'POST',
    url: '/portal/auth/exchange-ticket',
    payload: { ticket },
  });
  expect([portal.statusCode, portal.json().error.code]).toEqual([401, 'ticket_invalid']);
  expect((await exchange(ticket)).status).toBe(200);
});

it('rejects a ticket after an hour, and deletes it', async () => {
  const { ticket } = (await create()).body;
  await central.clock.advance(LOG_IN_TICKET_LIFETIME_MS);
  expect((await exchange(ticket)).status).toBe(401);
  await central.central.sweepAccounts();
  expect(await rows()).toEqual([]);
});

it('rejects a ticket whose session has ended', async () => {
  const byLogOut = (await create()).body.ticket;
  await central.call('POST', '/auth/logout', { headers: account.session });
  expect((await exchange(byLogOut)).status).toBe(401);

  const other = await central.signUp();
  const byPassword = (await create(other.session)).body.ticket;
  const second = await central.call('POST', '/users/login', {
    body: { email: other.email, password: other.password },
  });
  await central.call('PUT', '/users/me', {
    headers: { authorization: `Bearer ${second.body.token}` },
    body: { current_password: other.password, new_password: 'another horse battery' },
  });
  expect((await exchange(byPassword)).status).toBe(401);
});

it('stores the hash only, and retains the newest tickets of an account', async () => {
  const tickets: string[] = [];
  for (let index = 0; index <= MAX_LOG_IN_TICKETS; index += 1) {
    await central.clock.advance(1);
    tickets.push((await create()).body.ticket);
  }
  const stored = await rows();
  expect(stored).toHaveLength(MAX_LOG_IN_TICKETS);
  expect(tickets.some((ticket) => JSON.stringify(stored).includes(ticket))).toBe(false);
  expect((await exchange(tickets[0])).status).toBe(401);
  expect((await exchange(tickets[1])).status).toBe(200);
});

it('issues tickets to sessions only, and limits attempts like log-ins', async () => {
  expect((await create(account.key)).body.error.code).toBe('forbidden');
  expect((await create({})).body.error.code).toBe('unauthorized');
  const limited = await createTestCentral({ rateLimits: DEFAULT_LIMITS });
  const statuses: number[] = [];
  for (let index = 0; index < 11; index += 1) {
    statuses.push((await exchange('guess', limited)).status);
  }
  expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429]);
  await limited.close();
});
