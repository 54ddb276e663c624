import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../../../test/fakes/eventually.ts';
import type { TestAccount } from '../../../test/fakes/scenes/central-fixture.ts';
import { createPodScene, type PodScene } from '../../../test/fakes/scenes/pod-scene.ts';

const HOUR_MS = 3_600_000;
let scene: PodScene;
let operator: TestAccount;
beforeEach(async () => {
  scene = await createPodScene();
  operator = await scene.market.signUp();
  await scene.market.setOperator(operator);
});
afterEach(() => scene.close());

async function ask(method: 'GET' | 'POST', path: string) {
  const { session: headers } = operator;
  return scene.market.call(method, `/operator${path}`, { headers });
}
const read = async (path: string) => (await ask('GET', path)).body;
const clock = () => scene.market.clock;

it('reports the age of the oldest due work of each kind', async () => {
  const { db } = scene.market.ports;
  const nowMs = clock().now();
  await db
    .insertInto('due_work')
    .values({
      kind: 'cut-off',
      subject: 'a',
      due_at: nowMs - HOUR_MS,
      look_at: nowMs - HOUR_MS,
      attempts: 3,
      last_error: 'x',
    })
    .execute();
  const answer = await read('/queues');
  const ageOf = (kind: string) =>
    answer.queues.find((queue: { kind: string }) => queue.kind === kind);
  expect(ageOf('cut-off')).toMatchObject({ due: 1, failing: 1, oldest_age_seconds: 3_600 });
  for (const kind of ['pod_sync', 'mail', 'webhook', 'charge', 'payout']) {
    expect(ageOf(kind)).toMatchObject({ due: 0, oldest_due_at: null, oldest_age_seconds: 0 });
  }
  expect(answer.nodes).toEqual([{ state: 'verified', count: 1 }]);
});

it('shows how long the oldest node has waited for its sync', async () => {
  await scene.rentOne();
  await clock().advance(40_000);
  const { queues } = await read('/queues');
  expect(queues).toContainEqual(
    expect.objectContaining({ kind: 'pod_sync', due: 1, oldest_age_seconds: 40 }),
  );
});

it('records pods that a node lost, ended pods that a node still ran, and pods that are not in the database', async () => {
  const lost = await scene.running();
  const view = scene.host.pods.get(lost);
  scene.host.pods.delete(lost);
  await scene.later(10_000);
  expect(scene.host.pods.has(lost)).toBe(true);
  const entries = async () => (await read('/drift')).entries;
  expect(await entries()).toMatchObject([
    { kind: 'pod_lost', corrected: true, pod_id: lost, executor_id: scene.node.id },
  ]);

  await scene.remove(lost);
  await scene.later(10_000);
  if (view === undefined) throw new Error('the pod did not run');
  scene.host.pods.set(lost, view);
  const unknown = '00000000-0000-4000-8000-0000000000aa';
  scene.host.pods.set(unknown, { ...view, id: unknown });
  // The sync polls only nodes with pods.
  await scene.running();
  await scene.later(10_000);
  await scene.later(10_000);
  expect(scene.host.pods.has(lost)).toBe(false);
  expect(scene.host.pods.has(unknown)).toBe(true);
  const found = await entries();
  expect(found.map(({ kind, pod_id: pod }: Record<string, string>) => [kind, pod])).toEqual(
    expect.arrayContaining([
      ['pod_left', lost],
      ['pod_unknown', unknown],
      ['pod_lost', lost],
    ]),
  );
  expect(found.filter(({ kind }: Record<string, string>) => kind === 'pod_unknown')).toHaveLength(
    1,
  );
  const { last_day: counts } = await read('/drift');
  expect(counts).toEqual([
    { kind: 'pod_left', count: 1 },
    { kind: 'pod_lost', count: 1 },
    { kind: 'pod_unknown', count: 1 },
  ]);
  const page = await read('/drift?limit=2');
  const rest = await read(`/drift?limit=2&before=${page.next}`);
  expect([...page.entries, ...rest.entries]).toEqual(found);
  expect(rest.next).toBeNull();
});

it('keeps the newest 10,000 differences', async () => {
  const { db } = scene.market.ports;
  const row = { at_ms: 1, kind: 'pod_lost', executor_id: scene.node.id } as const;
  for (let batch = 0; batch < 11; batch += 1) {
    const rows = Array.from({ length: 1_000 }, () => ({ ...row, pod_id: operator.id }));
    await db.insertInto('drift').values(rows).execute();
  }
  const id = await scene.running();
  scene.host.pods.delete(id);
  await scene.later(10_000);
  const { count } = await db
    .selectFrom('drift')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  expect(Number(count)).toBe(10_000);
  expect((await read('/drift?limit=1')).entries[0].pod_id).toBe(id);
});

it('audits the ledger in the background, one audit at a time, and returns the violations', async () => {
  expect(await read('/ledger-proof')).toMatchObject({ state: 'none', holds: null, findings: [] });
  const begun = await ask('POST', '/ledger-proof');
  expect([begun.status, begun.body]).toMatchObject([
    200,
    { state: 'running', operator: operator.id, finished_at: null, holds: null },
  ]);
  const done = () =>
    eventually('the proof', async () => {
      const proof = await read('/ledger-proof');
      return proof.state !== 'running' && proof;
    });
  expect(await done()).toMatchObject({
    state: 'done',
    holds: true,
    findings: [],
    more_findings: 0,
    error: null,
    balance_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    transfers: expect.any(Number),
  });
  // Changes a balance without a transfer.
  const { db } = scene.market.ports;
  await db
    .updateTable('ledger_accounts')
    .set((eb) => ({ credits_posted: eb('credits_posted', '+', 7) }))
    .where('id', '=', `granted:${operator.id}`)
    .execute();
  await ask('POST', '/ledger-proof');
  const broken = await done();
  expect(broken).toMatchObject({ state: 'done', holds: false });
  expect(broken.findings.map(({ rule }: { rule: string }) => rule)).toContain('I15');
});

it('rejects a second proof while a proof runs, and a proof whose process has ended counts as failed', async () => {
  const { db } = scene.market.ports;
  const row = { operator: operator.id, started_at: clock().now(), state: 'running' } as const;
  const nothing = { finished_at: null, result_json: null, error: null };
  await db
    .insertInto('central_processes')
    .values({ boot_id: 'other', beat_at: clock().now() })
    .execute();
  await db
    .insertInto('ledger_proofs')
    .values({ ...row, ...nothing, boot_id: 'other' })
    .execute();
  const refused = await ask('POST', '/ledger-proof');
  expect([refused.status, refused.body.error.code]).toEqual([409, 'conflict']);
  await db.deleteFrom('central_processes').where('boot_id', '=', 'other').execute();
  expect(await read('/ledger-proof')).toMatchObject({ state: 'failed', error: expect.any(String) });
  expect((await ask('POST', '/ledger-proof')).status).toBe(200);
});
