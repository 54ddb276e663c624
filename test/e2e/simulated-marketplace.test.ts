/** `npm start -- --simulate` as a process: an operator advances the clock over HTTP, rents a pod, and lets its host die. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import { eventually } from '../fakes/eventually.ts';
import { api } from './api.ts';
import {
  freePortFlags,
  type MarketplaceProcess,
  removeHome,
  startMarketplaceProcess,
  temporaryHome,
} from './marketplace-process.ts';

const HOUR_S = 3_600;
const DAY_S = 86_400;
const SIZE = ['--providers', '10', '--renters', '10', '--seed', '7'];
/** A simulated day takes some seconds on an idle computer. */
const ADVANCED_WITHIN_MS = 240_000;

type Clock = { status: string; time: string; speed: number | null; violation: string | null };
type Statement = { total: number };
type Pod = { status: string; reason_code: string | null; executor: { id: string } };

const home = temporaryHome();
let market: MarketplaceProcess;
beforeAll(async () => {
  const [flag = '', port = ''] = await freePortFlags();
  // An engine that does not exist: a simulated marketplace uses none.
  const environment = { DOCKER_HOST: 'unix:///nonexistent/docker.sock' };
  market = await startMarketplaceProcess(home, ['--simulate', flag, port, ...SIZE], environment);
});
afterAll(async () => {
  await market?.end();
  removeHome(home);
});

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await api(market.demo(), method, path, body);
  expect([path, answer.status, answer.status < 400 ? '' : answer.body]).toEqual([path, 200, '']);
  return answer.body as T;
}

const clock = () => call<Clock>('GET', '/_local/clock');
const timeMs = async () => parseIsoTime((await clock()).time) ?? 0;
const podOf = (id: string) => call<Pod>('GET', `/pods/${id}`);

async function advance(seconds: number): Promise<void> {
  const beforeMs = await timeMs();
  const { status } = await call<Clock>('POST', '/_local/clock', { action: 'advance', seconds });
  expect(status).toBe('advancing');
  const isPaused = async () => (await clock()).status === 'paused';
  await eventually('the end of the advance', isPaused, ADVANCED_WITHIN_MS);
  expect((await timeMs()) - beforeMs).toBe(seconds * 1_000);
}

it('starts with a paused clock at the time of the scenario, and prints links that respond', async () => {
  expect(await clock()).toMatchObject({
    status: 'paused',
    time: '2027-01-01T00:00:00.000000',
    speed: null,
    violation: null,
  });
  const links = [...market.output().matchAll(/^ {2}\w+ +(https?:\S+)$/gm)];
  expect(links).toHaveLength(5);
  for (const [, url = ''] of links) {
    const { status } = await fetch(url, { headers: { Accept: 'text/html' } });
    expect([url, status]).toEqual([url, 200]);
  }
});

it(
  'advances by a day, in which renters rent and pay',
  async () => {
    await advance(DAY_S);
    const { events } = await call<{ events: { kind: string }[] }>('GET', '/_local/events');
    expect(events.map(({ kind }) => kind)).toContain('rented');
    const { nodes } = await call<{ nodes: { offer: string }[] }>('GET', '/operator/fleet');
    expect(nodes).toHaveLength(10);
    expect(nodes.filter(({ offer }) => offer === 'rentable').length).toBeGreaterThan(0);
    expect((await clock()).violation).toBeNull();
    // The printed link still logs in, although a day has passed in the market.
    const [, ticket] = /#ticket=(\S+)/.exec(market.output()) ?? [];
    expect(await call('POST', '/auth/exchange-ticket', { ticket })).toHaveProperty('user');
  },
  ADVANCED_WITHIN_MS,
);

it(
  'runs and charges a pod of a person, and a fault of its host interrupts the pod',
  async () => {
    const [node] = await call<{ id: string }[]>('GET', '/executors');
    const executorId = node?.id ?? '';
    const { id } = await call<{ id: string }>('POST', `/executors/${executorId}/rent`, {
      pod_name: 'first',
      template_id: market.demo().templates[0]?.id,
    });
    expect((await podOf(id)).status).toBe('PENDING');
    await advance(HOUR_S);
    expect(await podOf(id)).toMatchObject({ status: 'RUNNING', executor: { id: executorId } });
    await advance(2 * HOUR_S);
    const { total } = await call<Statement>('GET', `/pods/${id}/statement`);
    expect(total).toBeGreaterThan(0);
    const begun = await call<{ faults: { kind: string; executor_id: string }[] }>(
      'POST',
      '/_local/faults',
      { kind: 'dies', executor_id: executorId, lasts_minutes: 6 * 60 },
    );
    expect(begun.faults).toContainEqual(
      expect.objectContaining({ kind: 'dies', executor_id: executorId }),
    );
    const again = await api(market.demo(), 'POST', '/_local/faults', {
      kind: 'dies',
      executor_id: executorId,
      lasts_minutes: 1,
    });
    expect([again.status, again.body]).toMatchObject([409, { error: { code: 'conflict' } }]);
    await advance(3 * HOUR_S);
    const outage = { reason: 'provider_fault', detail: 'unreachable' };
    expect(await call('GET', `/pods/${id}/events`)).toContainEqual(expect.objectContaining(outage));
    // A renter does not pay for the outage.
    expect((await call<Statement>('GET', `/pods/${id}/statement`)).total).toBeLessThan(2 * total);
  },
  ADVANCED_WITHIN_MS,
);

it('ends a fault of a region before its time, and refuses to end it again', async () => {
  const begin = { kind: 'region', region: 'eu', lasts_minutes: 12 * 60 };
  type Faults = { faults: { number: number; kind: string }[]; regions: string[] };
  const begun = await call<Faults>('POST', '/_local/faults', begin);
  const { number } = begun.faults.find(({ kind }) => kind === 'region') ?? { number: 0 };
  await advance(HOUR_S);
  const path = `/_local/faults/${number}`;
  const left = await call<Faults>('DELETE', path);
  expect(left.faults.filter(({ kind }) => kind === 'region')).toEqual([]);
  const again = await api(market.demo(), 'DELETE', path);
  expect([again.status, again.body]).toMatchObject([404, { error: { code: 'not_found' } }]);
  const { events } = await call<{ events: { kind: string; details: object }[] }>(
    'GET',
    '/_local/events',
  );
  expect(events).toContainEqual(
    expect.objectContaining({
      kind: 'repair',
      details: expect.objectContaining({ fault: 'region', region: 'eu', began: number }),
    }),
  );
});

it('advances until the central API is back after it was killed, and keeps its data', async () => {
  await call('POST', '/_local/faults', { kind: 'central', lasts_minutes: 10 });
  await call('POST', '/_local/clock', { action: 'advance', seconds: HOUR_S });
  await eventually('a response after the restart', async () => {
    const state = await clock().catch(() => null);
    return state?.status === 'paused';
  });
  const { events } = await call<{ events: { kind: string }[] }>('GET', '/_local/events');
  const kinds = events.map(({ kind }) => kind);
  expect(kinds.slice(0, kinds.indexOf('fault-central') + 1)).toContain('repair');
});

it('runs at a speed, and refuses a second advance until it is paused', async () => {
  const { status } = await call<Clock>('POST', '/_local/clock', { action: 'run', speed: 600 });
  expect(status).toBe('running');
  const beforeMs = await timeMs();
  await eventually('ten minutes', async () => (await timeMs()) - beforeMs >= 600_000);
  await call('POST', '/_local/clock', { action: 'advance', seconds: 366 * DAY_S });
  const second = await api(market.demo(), 'POST', '/_local/clock', {
    action: 'advance',
    seconds: 1,
  });
  expect([second.status, second.body]).toMatchObject([409, { error: { code: 'conflict' } }]);
  expect((await call<Clock>('POST', '/_local/clock', { action: 'pause' })).status).toBe('paused');
  const pausedMs = await timeMs();
  await call('GET', '/executors');
  expect(await timeMs()).toBe(pausedMs);
});

it('rejects accounts without the role, and values out of range', async () => {
  const account = { email: 'newcomer@example.com', password: 'correct horse' };
  const { api_key: key } = await call<{ api_key: string }>('POST', '/users', account);
  const refused = await api(market.demo(), 'GET', '/_local/clock', undefined, { 'X-API-Key': key });
  expect(refused.status).toBe(403);
  for (const body of [
    { action: 'advance', seconds: 367 * DAY_S },
    { action: 'run', speed: 86_401 },
    { action: 'run' },
  ]) {
    expect((await api(market.demo(), 'POST', '/_local/clock', body)).status).toBe(422);
  }
});

it('stops on SIGTERM', async () => {
  expect(await market.end('SIGTERM')).toBe(0);
});
