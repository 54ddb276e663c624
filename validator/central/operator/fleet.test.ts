import { afterEach, beforeEach, expect, it } from 'vitest';
import { seedMarket } from '../../../test/bench/market-seed.ts';
import { createTestMarket, type TestMarket } from '../../../test/fakes/scenes/market-fixture.ts';
import { createPodScene } from '../../../test/fakes/scenes/pod-scene.ts';
import { rentalObstacles, requireExecutor } from '../market/executors/executor.service.ts';

const POD = '00000000-0000-4000-8000-0000000000ff';
const NODES = 1_050;
let market: TestMarket;
let headers: Record<string, string>;
beforeEach(async () => {
  market = await createTestMarket();
  const operator = await market.signUp();
  await market.setOperator(operator);
  headers = operator.session;
});
afterEach(() => market.close());

async function read(path: string, of = { market, headers }) {
  const { status, body } = await of.market.call('GET', `/operator${path}`, { headers: of.headers });
  expect([path, status, status === 200 ? null : body]).toEqual([path, 200, null]);
  return body;
}

/** Adds nodes. A quarter of them have a rented GPU. */
async function seed(nodes: number): Promise<void> {
  const { db } = market.ports;
  await seedMarket(db, nodes);
  await db.updateTable('gpu_slots').set({ pod_id: POD }).where('pod_id', 'is not', null).execute();
}

type Node = Awaited<ReturnType<typeof read>>;

/** Reads all pages of a list, and returns all nodes. */
async function readAll(query: string, limit: number): Promise<Node[]> {
  const nodes: Node[] = [];
  for (let page = 1; ; page += 1) {
    const answer = await read(`/fleet?${query}&limit=${limit}&page=${page}`);
    expect(answer).toMatchObject({ page, limit });
    nodes.push(...answer.nodes);
    if (answer.nodes.length < limit) {
      expect(answer.total).toBe(nodes.length);
      return nodes;
    }
  }
}

it('lists a large fleet in pages, and the summary has the same numbers', async () => {
  const { db } = market.ports;
  await seed(NODES);
  const ids = (await db.selectFrom('executors').select('id').orderBy('id').execute()).map(
    ({ id }) => id,
  );
  const change = (from: number, to: number, set: object) =>
    db.updateTable('executors').set(set).where('id', 'in', ids.slice(from, to)).execute();
  await change(0, 100, { paused: 1 });
  await change(100, 200, { state: 'failed' });
  await db
    .updateTable('executors')
    .set((eb) => ({ min_gpu_count: eb.ref('gpu_count') }))
    .where('id', 'in', ids.slice(200, 300))
    .execute();
  await change(300, 310, { state: 'removed', removed_at: 1 });

  const nodes = await readAll('', 100);
  expect(nodes).toHaveLength(NODES - 10);
  expect(new Set(nodes.map(({ id }) => id)).size).toBe(nodes.length);
  for (const node of nodes) {
    const executor = await requireExecutor(db, node.id);
    const codes = rentalObstacles(executor).map(({ code }) => code);
    expect([node.offer, node.reasons.map(({ code }: { code: string }) => code)]).toEqual([
      codes[0] ?? 'rentable',
      codes,
    ]);
    const free = node.slots.filter((slot: { pod_id: string | null }) => slot.pod_id === null);
    expect([node.slots.length, free.length]).toEqual([node.gpu_count, node.free_gpu_count]);
  }

  const summary = await read('/fleet/summary');
  const sum = (list: Node[], of: string) => list.reduce((total, node) => total + node[of], 0);
  expect(summary).toMatchObject({
    nodes: nodes.length,
    gpus: sum(nodes, 'gpu_count'),
    free_gpus: sum(nodes, 'free_gpu_count'),
    free_not_rentable_gpus: sum(
      nodes.filter(({ offer }) => offer !== 'rentable'),
      'free_gpu_count',
    ),
  });
  expect(summary.free_not_rentable_gpus).toBeGreaterThan(100);
  for (const { offer, nodes: count, gpus, free_gpus: free } of summary.offers) {
    const found = await readAll(`offer=${offer}`, 500);
    expect([offer, count, gpus, free]).toEqual([
      ...[offer, found.length, sum(found, 'gpu_count'), sum(found, 'free_gpu_count')],
    ]);
    expect(found.every((node) => node.offer === offer)).toBe(true);
  }
  const stranded = await readAll('offer=gpu_count_invalid&free=true', 1_000);
  expect(stranded.every((node) => node.free_gpu_count > 0)).toBe(true);
  expect(await readAll('offer=removed', 100)).toHaveLength(10);
  expect(await readAll('free=false', 1_000)).toEqual(
    nodes.filter(({ free_gpu_count: free }) => free === 0),
  );
});

it('finds nodes whose last check is old, or which were never checked', async () => {
  await seed(3);
  const { db } = market.ports;
  const ids = (await readAll('', 100)).map(({ id }) => id);
  const set = (id: string | undefined, verdict_at: number | null) =>
    db
      .updateTable('executors')
      .set({ verdict_at })
      .where('id', '=', id ?? '')
      .execute();
  const nowMs = market.clock.now();
  await set(ids[0], nowMs - 3_600_000);
  await set(ids[1], nowMs - 3_599_000);
  await set(ids[2], null);
  const old = await readAll('min_check_age_minutes=60', 100);
  expect(old.map(({ id }) => id)).toEqual([ids[0], ids[2]]);
});

it('finds nodes by id, address, hotkey and a part of the name, and does not interpret wildcards', async () => {
  await seed(20);
  const total = async (q: string) => (await read(`/fleet?q=${encodeURIComponent(q)}`)).total;
  const { nodes } = await read('/fleet?limit=1');
  expect(await total(nodes[0].id.toUpperCase())).toBe(1);
  expect(await total(nodes[0].executor_ip_address)).toBe(1);
  expect(await total('h')).toBe(20);
  expect(await total('rtx 4090')).toBe(4);
  expect(await total('%')).toBe(0);
  expect(await total("' or 1=1 --")).toBe(0);
});

it('returns the pod on each GPU of a node', async () => {
  const scene = await createPodScene();
  try {
    const operator = await scene.market.signUp();
    await scene.market.setOperator(operator);
    const of = { market: scene.market, headers: operator.session };
    const id = await scene.running({ gpu_count: 1 });
    const { nodes } = await read('/fleet', of);
    expect(
      nodes[0].slots.map((slot: { pod_id: string | null }) => slot.pod_id).filter(Boolean),
    ).toEqual([id]);
    expect(nodes[0]).toMatchObject({ id: scene.node.id, last_seen_at: expect.any(String) });
  } finally {
    await scene.close();
  }
});

it('lists providers with their nodes, and the reason of a ban', async () => {
  await market.verifiedNode({ gpus: 4 });
  const { hotkey } = market.provider;
  const ban = (act: string, reason: string) =>
    market.call('POST', `/operator/providers/${hotkey}/${act}`, { headers, body: { reason } });
  await ban('ban', 'first');
  await ban('unban', 'an error');
  await ban('ban', 'sold cards that do not exist');
  const { providers, total } = await read('/providers?banned=true');
  expect([total, providers]).toMatchObject([
    1,
    [
      {
        hotkey,
        banned: true,
        ban_reason: 'sold cards that do not exist',
        nodes: 1,
        gpus: 4,
        free_gpus: 4,
        unpaid: 0,
        opted_in: true,
      },
    ],
  ]);
  expect((await read('/providers?banned=false')).total).toBe(0);
  expect((await read(`/providers?q=${hotkey}`)).total).toBe(1);
  expect((await read('/providers?q=unknown')).total).toBe(0);
  const [{ id }] = providers;
  const audit = await read(`/audit?subject_type=provider&subject_id=${id}&limit=2`);
  expect(audit.map(({ reason }: { reason: string }) => reason)).toEqual([
    'sold cards that do not exist',
    'an error',
  ]);
  const older = await read(`/audit?subject_type=provider&subject_id=${id}&before=${audit[1].seq}`);
  expect(older.map(({ reason }: { reason: string }) => reason)).toEqual(['first']);
  const half = await market.call('GET', `/operator/audit?subject_id=${id}`, { headers });
  expect(half.status).toBe(422);
});
