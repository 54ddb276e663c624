import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { DEFAULT_TEMPLATE } from '../../../../test/fakes/scenes/market-fixture.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';

const HOUR_MS = 3_600_000;
const DAY_HOURS = 24;

let scene: PodScene;
beforeAll(async () => {
  scene = await createPodScene();
});
afterAll(() => scene.market.close());

const reliability = async (id: string) =>
  (await scene.market.call('GET', `/executors/${id}/reliability`)).body;
const listed = async (query = '') =>
  (await scene.market.call('GET', `/executors?${query}`)).body as {
    id: string;
    reliability_score: number | null;
    uptime_in_minutes: number | null;
  }[];
const rowOf = async (id: string) => (await listed()).find((row) => row.id === id);
const UNREACHABLE = { verdict: 'failed', inventory: null } as const;

/** Sends one report per hour, or after every `step` hours. */
async function hours(node: PodScene['node'], count: number, change: object = {}, step = 1) {
  for (let hour = 0; hour < count; hour += step) {
    await scene.market.clock.advance(step * HOUR_MS);
    expect((await scene.market.report(node, change)).status).toBe(200);
  }
}

describe('the reliability of a node', () => {
  it('is unknown at first, and then changes with reachable time, launches and interruptions', async () => {
    const { node, host } = scene;
    await hours(node, DAY_HOURS - 1);
    expect(await rowOf(node.id)).toMatchObject({ reliability_score: null });
    expect(await reliability(node.id)).toMatchObject({
      reliability_score: null,
      observed_minutes: 23 * 60,
      availability: 1,
    });
    await hours(node, 1);
    expect(await rowOf(node.id)).toMatchObject({
      reliability_score: 1,
      uptime_in_minutes: 24 * 60,
    });

    // Six of thirty hours without an answer.
    await hours(node, 5, UNREACHABLE);
    const unknown = { verdict: 'withheld', inventory: null };
    await hours(node, 1, unknown);
    expect(await rowOf(node.id)).toBeUndefined();
    await hours(node, 1);
    const after = await reliability(node.id);
    // The withheld report shows nothing, so the next report decides about both hours.
    expect(after).toMatchObject({ observed_minutes: 31 * 60, reachable_minutes: 26 * 60 });
    expect(await rowOf(node.id)).toMatchObject({ reliability_score: 0.838, uptime_in_minutes: 0 });

    const pod = await scene.running();
    await scene.later();
    expect((await scene.pod(pod)).status).toBe('RUNNING');
    host.up = false;
    await scene.later(120_000);
    expect((await scene.pod(pod)).phase).toBe('unreachable');
    host.up = true;
    await scene.later(10_000);
    const counted = await reliability(node.id);
    expect(counted).toMatchObject({ launches_succeeded: 1, launches_failed: 0, interruptions: 1 });
    await hours(node, 1);
    const score = Math.floor((27.03 / 32.03) * (7.04 / 8.04) * 1_000) / 1_000;
    expect((await rowOf(node.id))?.reliability_score).toBeCloseTo(score, 2);
    await scene.remove(pod);
    await scene.later();
  });

  it('ignores events more than 30 days ago, and stores at most 31 rows per node', async () => {
    const { node, market } = scene;
    await hours(node, 35 * DAY_HOURS, {}, DAY_HOURS / 2);
    expect(await reliability(node.id)).toMatchObject({ availability: 1, interruptions: 0 });
    await market.central.sweepAccounts();
    const rows = await market.ports.db.selectFrom('node_days').selectAll().execute();
    expect(rows.length).toBeLessThanOrEqual(31);
  });

  it('sorts the list, decides between otherwise equal nodes, and can be required', async () => {
    const { market, node: reliable } = scene;
    const young = await market.verifiedNode({ price: 2 });
    const flaky = await market.verifiedNode();
    await hours(flaky, 12);
    await hours(flaky, 12, UNREACHABLE);
    await hours(flaky, 2);
    const order = async (query: string) => (await listed(query)).map(({ id }) => id);
    expect(await order('sort=reliability')).toEqual([reliable.id, flaky.id, young.id]);
    expect((await order('sort=price'))[0]).toBe(young.id);
    expect((await market.call('GET', '/executors?sort=name')).status).toBe(422);
    const bySpec = (spec: object) =>
      market.call('POST', '/executors/rent-by-spec', {
        headers: scene.account.key,
        body: { pod_name: 'x', template_id: DEFAULT_TEMPLATE, dry_run: true, ...spec },
      });
    const required = await bySpec({ min_reliability: 0.9 });
    expect(required.body).toMatchObject({
      candidates: 1,
      selected_executor: { id: reliable.id, reliability_score: expect.any(Number) },
    });
    // Both nodes have the same price and speed.
    const preferred = await bySpec({ min_reliability: 0.1 });
    expect(preferred.body).toMatchObject({
      candidates: 2,
      selected_executor: { id: reliable.id },
      alternatives_considered: [{ id: flaky.id }],
    });
    const none = await bySpec({ min_reliability: 1, max_price_per_gpu_hour: 2 });
    expect([none.status, none.body]).toMatchObject([
      409,
      {
        constraint: 'max_price_per_gpu_hour',
        funnel: expect.arrayContaining([{ constraint: 'min_reliability', remaining: 1 }]),
      },
    ]);
    expect((await bySpec({ min_reliability: 2 })).status).toBe(422);
  });
});

describe('faults reduce the reliability of the node that caused them', () => {
  const LIMIT_MS = 600_000;
  let other: PodScene;
  beforeEach(async () => {
    other = await createPodScene({ signupCreditUusd: 1_000_000_000 });
  });
  afterEach(() => other.market.close());

  const counts = async () => {
    const { body } = await other.market.call('GET', `/executors/${other.node.id}/reliability`);
    return [body.launches_succeeded, body.launches_failed, body.interruptions];
  };

  it('a launch that the node does not accept in time, or to which it does not respond', async () => {
    const { host } = other;
    host.refusal = new ApiError('gpu_unavailable', 'a process is left on the GPU');
    const busy = await other.running();
    await other.later(LIMIT_MS);
    expect([(await other.pod(busy)).status, await counts()]).toEqual([
      'CREATION_FAILED',
      [0, 1, 0],
    ]);
    host.refusal = null;
    host.up = false;
    const silent = await other.running();
    await other.later(LIMIT_MS);
    await other.later(31_000);
    expect([(await other.pod(silent)).status, await counts()]).toEqual([
      'CREATION_FAILED',
      [0, 2, 0],
    ]);
  });

  it('not a rejected request, and not an image that cannot be pulled', async () => {
    const { host } = other;
    host.refusal = new ApiError('spec_refused', 'the provider does not allow this registry');
    const refused = await other.running();
    expect((await other.pod(refused)).status).toBe('CREATION_FAILED');
    host.refusal = null;
    host.arrives = 'pulling';
    const pulling = await other.running();
    host.change(pulling, { phase: 'backoff', reason: 'ImageUnreachable', message: 'no answer' });
    await other.later(LIMIT_MS);
    expect((await other.pod(pulling)).status).toBe('CREATION_FAILED');
    expect(await counts()).toEqual([0, 0, 0]);
  });

  it('a lost contact, but not while the gateway does not respond, and not in announced maintenance', async () => {
    const { host, market, node } = other;
    const pod = await other.running();
    const outage = async () => {
      host.up = false;
      await other.later(120_000);
      expect((await other.pod(pod)).phase).toBe('unreachable');
      host.up = true;
      host.gatewayUp = true;
      await other.later(10_000);
      expect((await other.pod(pod)).phase).toBe('ready');
      return counts();
    };
    host.gatewayUp = false;
    expect(await outage()).toEqual([1, 0, 0]);
    expect(await outage()).toEqual([1, 0, 1]);
    const startMs = market.clock.now() + 25 * HOUR_MS;
    const body = { starting_at: `${naiveUtc(startMs)}Z`, period_in_minute: 60 };
    const token = await market.logIn();
    const path = `/executors/${node.id}/notice-period`;
    expect((await market.portal('POST', path, { token, body })).status).toBe(200);
    while (market.clock.now() < startMs) await other.later(HOUR_MS / 2);
    expect(await outage()).toEqual([1, 0, 1]);
  });
});
