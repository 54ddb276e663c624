import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import {
  createTestMarket,
  DEFAULT_TEMPLATE,
  type TestMarket,
} from '../../../../test/fakes/scenes/market-fixture.ts';
import { setAvailable } from '../../../../test/fakes/scenes/wallet.ts';
import type { Db } from '../../platform/database/tables.ts';
import { createMarketView } from '../executors/market-view.ts';
import { rentFirstOf } from './rent-by-spec.service.ts';
import { createSpecSearch } from './spec-search.ts';

const L40S = { gpuType: 'NVIDIA L40S', name: 'NVIDIA L40S' };

let market: TestMarket;
let account: TestAccount;

beforeEach(async () => {
  market = await createTestMarket();
  account = await market.renter();
});
afterEach(() => market.close());

function bySpec(body: Record<string, unknown>, headers: Record<string, string> = {}) {
  return market.call('POST', '/executors/rent-by-spec', {
    headers: { ...account.key, ...headers },
    body: { pod_name: 'mine', template_id: DEFAULT_TEMPLATE, ...body },
  });
}

async function pods() {
  return market.ports.db.selectFrom('pods').select(['id', 'executor_id']).execute();
}

describe('a specification that nodes meet', () => {
  it('rents the node with the lowest price per GPU, and lists the other nodes', async () => {
    const dear = await market.verifiedNode({ gpus: 2, price: 3 });
    const cheap = await market.verifiedNode({ gpus: 2, price: 2.5 });
    await market.verifiedNode({ gpus: 1, price: 0.8, ...L40S });
    const { status, body } = await bySpec({ gpu_type: 'H100', min_ram_gb: 200 });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      success: true,
      dry_run: false,
      pod: { status: 'PENDING', executor_id: cheap.id, price: 5 },
      template_id: DEFAULT_TEMPLATE,
      price_per_hour: 5,
      selected_executor: { id: cheap.id, available_gpu_count: 0, is_bookmarked: false },
      candidates: 2,
      alternatives_considered: [
        {
          id: dear.id,
          machine_name: 'NVIDIA H100 80GB HBM3',
          gpu_count: 2,
          available_gpu_count: 2,
          price_per_gpu: 3,
          price_per_hour: 6,
          download_mbps: 0,
          country_code: '',
        },
      ],
      attempts: 1,
    });
    expect([body.pod_id, body.pod.id]).toEqual([body.id, body.id]);
    await market.sync();
    const pod = await market.call('GET', `/pods/${body.id}`, { headers: account.key });
    expect(pod.body.status).toBe('RUNNING');
  });

  it('changes nothing on a dry run', async () => {
    const node = await market.verifiedNode({ gpus: 4, minimum: 1 });
    const { status, body } = await bySpec({ gpu_count: 2, dry_run: true });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      dry_run: true,
      pod: null,
      pod_id: null,
      id: null,
      attempts: 0,
      price_per_hour: 4.4,
      candidates: 1,
      template_id: DEFAULT_TEMPLATE,
      selected_executor: { id: node.id, available_gpu_count: 4 },
    });
    expect(await pods()).toEqual([]);
    const { db } = market.ports;
    const taken = db.selectFrom('gpu_slots').select('pod_id').where('pod_id', 'is not', null);
    expect(await taken.execute()).toEqual([]);
    const rentals = db.selectFrom('events').select('id').where('event_type', '=', 'pod-rent');
    expect(await rentals.execute()).toEqual([]);
  });

  it('explains a success if the body or the query requests an explanation', async () => {
    await market.verifiedNode({ gpus: 2, price: 2.5 });
    await market.verifiedNode({ gpus: 1, price: 0.8, ...L40S });
    const spec = { gpu_type: 'H100', max_price_per_gpu_hour: 3, dry_run: true };
    const plain = await bySpec(spec);
    expect([plain.body.funnel, plain.body.nearest]).toEqual([undefined, undefined]);
    const explanation = {
      funnel: [
        { constraint: 'rentable', remaining: 2 },
        { constraint: 'gpu_type', remaining: 1 },
        { constraint: 'gpu_count', remaining: 1 },
        { constraint: 'max_price_per_gpu_hour', remaining: 1 },
      ],
      nearest: [],
    };
    expect((await bySpec({ ...spec, explain: true })).body).toMatchObject(explanation);
    const asked = await market.call('POST', '/executors/rent-by-spec?explain=true', {
      headers: account.key,
      body: { pod_name: 'mine', template_id: DEFAULT_TEMPLATE, ...spec },
    });
    expect(asked.body).toMatchObject({ dry_run: true, ...explanation });
  });

  it('rejects a dry run with the same message as the rental', async () => {
    await market.verifiedNode();
    const { db } = market.ports;
    const nowhere = '00000000-0000-4000-8000-000000000000';
    const once = await market.call('POST', '/templates', {
      headers: account.key,
      body: {
        name: 'once',
        docker_image: 'alpine',
        docker_image_tag: '3',
        one_time_template: true,
      },
    });
    const used = { template_id: once.body.id };
    expect((await bySpec({ ...used, dry_run: true })).body.template_id).toBe(once.body.id);
    expect((await bySpec(used)).status).toBe(200);
    await market.verifiedNode();
    const both = async (wish: Record<string, unknown>) => {
      const answers = [await bySpec({ ...wish, dry_run: true }), await bySpec(wish)];
      const [dry, real] = answers.map(({ status, body }) => [
        status,
        body.error.code,
        body.message,
      ]);
      expect(dry).toEqual(real);
      return dry?.[1];
    };
    expect(await both({ template_id: nowhere })).toBe('template_not_found');
    expect(await both(used)).toMatch(/^template_/);
    expect(await both({ termination_hours: 0 })).toBe('ttl_invalid');
    expect(await both({ user_public_key: 'ssh-rsa x' })).toBe('bad_request');
    expect(await both({ secret_names: ['a'] })).toBe('bad_request');
    await setAvailable(db, 1);
    await db.updateTable('accounts').set({ email_verified_at: null }).execute();
    expect(await both({})).toBe('email_not_verified');
    expect(await both({ max_price_per_gpu_hour: 0.01 })).toBe('email_not_verified');
    await db.updateTable('accounts').set({ email_verified_at: 1 }).execute();
    expect(await both({})).toBe('insufficient_balance');
    expect(await pods()).toHaveLength(1);
  });

  it('returns the same node for a repeated Idempotency-Key, even if a cheaper node was added', async () => {
    const first = await market.verifiedNode({ gpus: 2, price: 3 });
    const key = { 'idempotency-key': 'by-spec-1' };
    const rented = await bySpec({}, key);
    expect(rented.body.selected_executor.id).toBe(first.id);
    await market.verifiedNode({ gpus: 2, price: 2 });
    const again = await bySpec({}, key);
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(again.body).toEqual(rented.body);
    expect(await pods()).toHaveLength(1);
    const other = await bySpec({ gpu_type: 'H100' }, key);
    expect([other.status, other.body.error.code]).toEqual([422, 'idempotency_key_reused']);
  });

  it('rejects invalid requests without trying other nodes, and stores nothing', async () => {
    await market.verifiedNode();
    await market.verifiedNode();
    expect((await bySpec({ termination_hours: 0 })).body.error.code).toBe('ttl_invalid');
    await setAvailable(market.ports.db, 1);
    expect((await bySpec({})).body.error.code).toBe('insufficient_balance');
    expect(await pods()).toEqual([]);
    const free = await market.call('GET', '/executors/count');
    expect(free.body).toEqual({ count: 2 });
  });

  it('assigns the available GPUs once each to 20 concurrent requests', async () => {
    await market.verifiedNode({ gpus: 4, minimum: 1 });
    await market.verifiedNode({ gpus: 2, minimum: 1 });
    const answers = await Promise.all(Array.from({ length: 20 }, () => bySpec({ gpu_count: 1 })));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(6);
    for (const { status, body } of answers.filter((answer) => answer.status !== 200)) {
      expect([status, body.error.code]).toEqual([
        409,
        expect.stringMatching(/^(no_executor_matches_spec|node_rent_in_progress)$/),
      ]);
    }
    const slots = await market.ports.db.selectFrom('gpu_slots').select('pod_id').execute();
    expect(new Set(slots.map((slot) => slot.pod_id)).size).toBe(6);
  });
});

describe('nodes that were rented after they were chosen', () => {
  const request = () => ({
    body: { pod_name: 'mine', template_id: DEFAULT_TEMPLATE, max_price_per_gpu_hour: 4 },
    identity: { accountId: '', source: 'sdk', clientVersion: null },
    actor: { auth: 'session', apiKeyId: null, requestId: 'r' },
  });

  async function tryAll(between: (ids: string[]) => Promise<unknown>) {
    const { db, clock, random } = market.ports;
    const { id: accountId } = await db
      .selectFrom('accounts')
      .select('id')
      .executeTakeFirstOrThrow();
    const wish = { ...request(), isExplained: false };
    const match = await createSpecSearch(createMarketView({ db }))(wish.body);
    if (!('survivors' in match)) throw new Error(match.message);
    const { survivors } = match;
    await between(survivors.map(({ id }) => id));
    const asked = { ...wish, identity: { ...wish.identity, accountId } } as Parameters<
      typeof rentFirstOf
    >[2];
    const nothing = async () => undefined;
    const deps = {
      clock,
      random,
      launchLimitMs: 600_000,
      afterSpend: nothing,
      beginRestore: nothing,
      attachSecrets: nothing,
    };
    const rent = (tx: Db) => rentFirstOf(tx, deps, asked, survivors);
    return db.transaction().execute(rent);
  }

  it('are skipped, and nothing of the failed attempts is stored', async () => {
    await market.verifiedNode({ price: 2 });
    await market.verifiedNode({ price: 2.5 });
    const third = await market.verifiedNode({ price: 3 });
    const rented = await tryAll(async ([first = '', second = '']) => {
      await market.rent(await market.renter(), first);
      await market.ports.db
        .updateTable('executors')
        .set({ price_uusd_per_gpu_hour: 5_000_000 })
        .where('id', '=', second)
        .execute();
    });
    expect([rented.node.id, rented.attempts]).toEqual([third.id, 3]);
    expect(await pods()).toHaveLength(2);
  });

  it('cause node_rent_in_progress if no other node is left', async () => {
    await market.verifiedNode();
    const lost = tryAll(async ([first = '']) => market.rent(await market.renter(), first));
    await expect(lost).rejects.toMatchObject({ code: 'node_rent_in_progress', status: 409 });
    expect(await pods()).toHaveLength(1);
  });
});

describe('a specification that no node meets', () => {
  it('returns the error object, and its members also at the top level', async () => {
    const node = await market.verifiedNode({ gpus: 2, price: 2.4 });
    await market.verifiedNode({ gpus: 1, price: 0.8, ...L40S });
    const { status, body } = await bySpec({ gpu_type: 'H100', max_price_per_gpu_hour: 2 });
    expect(status).toBe(409);
    const flat = {
      code: 'no_executor_matches_spec',
      constraint: 'max_price_per_gpu_hour',
      requested: 2,
      best_offered: 2.4,
      candidates_before: 1,
      funnel: [
        { constraint: 'rentable', remaining: 2 },
        { constraint: 'gpu_type', remaining: 1 },
        { constraint: 'gpu_count', remaining: 1 },
        { constraint: 'max_price_per_gpu_hour', remaining: 0 },
      ],
      nearest: [
        {
          constraint: 'max_price_per_gpu_hour',
          requested: 2,
          offered: 2.4,
          executor_id: node.id,
        },
      ],
    };
    expect(body).toMatchObject({
      ...flat,
      success: false,
      status_code: 409,
      message: 'No node within 2.00 per GPU-hour; cheapest offered 2.40',
      error: {
        code: 'no_executor_matches_spec',
        message: 'No node within 2.00 per GPU-hour; cheapest offered 2.40',
        hint: 'Raise max_price_per_gpu_hour to 2.40 or more.',
      },
      details: flat,
    });
    expect(body.error.request_id).toBe(body.request_id);
    expect(await pods()).toEqual([]);
  });

  it('reports the number of all nodes if no node can be rented', async () => {
    await market.addNode();
    const { body } = await bySpec({});
    expect(body).toMatchObject({ constraint: 'rentable', candidates_before: 1, nearest: [] });
  });

  it.each([
    ['min_ram_gb', -1],
    ['max_price_per_gpu_hour', -0.5],
    ['min_cpus', 1.5],
    ['gpu_count', 0],
    ['gpu_type', ' '],
    ['docker_in_docker', 'yes'],
  ])('is rejected with 422 for %s = %j', async (name, value) => {
    expect((await bySpec({ [name]: value })).status).toBe(422);
  });

  it('checks the credential first, then the idempotency key', async () => {
    const path = '/executors/rent-by-spec';
    const headers = { 'idempotency-key': 'not valid!' };
    expect((await market.call('POST', path, { headers, body: {} })).status).toBe(401);
    expect((await bySpec({ pod_name: '' }, headers)).body.error.code).toBe(
      'idempotency_key_invalid',
    );
  });
});
