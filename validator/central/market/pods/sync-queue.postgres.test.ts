/** Two central APIs on one PostgreSQL database, in one process with one clock. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createPostgresDatabase } from '../../../../test/fakes/scenes/central-database.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import {
  type AddedNode,
  createTestMarket,
  type TestMarket,
} from '../../../../test/fakes/scenes/market-fixture.ts';
import { openHolds, setAvailable } from '../../../../test/fakes/scenes/wallet.ts';
import { walletOf } from '../../money/ledger/wallet.service.ts';
import { openCentralDatabase } from '../../platform/database/database.ts';
import { LEASE_MS } from '../../platform/processes.ts';

const CALM_INTERVAL_MS = 10_000;

let one: TestMarket;
let other: TestMarket;
let nodes: AddedNode[];
let account: TestAccount;

beforeEach(async () => {
  const url = await createPostgresDatabase();
  one = await createTestMarket({ db: await openCentralDatabase(url) });
  const { agents, clock } = one;
  other = await createTestMarket({ db: await openCentralDatabase(url), agents, clock });
  nodes = [];
  for (let count = 0; count < 6; count += 1) nodes.push(await one.verifiedNode({ gpus: 1 }));
  account = await one.renter();
});
afterEach(async () => {
  await one.close();
  await other.close();
});

const puts = () =>
  nodes.flatMap(({ id }) => one.agents.host(id).calls.filter((call) => call.startsWith('put')));

/** Number of pod lists requested from the agents while `work` ran. */
async function listingsDuring(work: () => Promise<unknown>): Promise<number> {
  const before = one.agents.listings();
  await work();
  return one.agents.listings() - before;
}

/** Advances the clock while both processes send their heartbeats. */
async function laterWithBeats(ms: number): Promise<void> {
  await one.clock.advance(ms);
  const beat = { beat_at: one.clock.now() };
  await one.ports.db.updateTable('central_processes').set(beat).execute();
}

it('sends each launch once, regardless of which process received the rental or runs the sync', async () => {
  for (const [index, node] of nodes.entries()) {
    await (index % 2 === 0 ? one : other).rent(account, node.id);
  }
  for (let round = 0; round < 4; round += 1) await Promise.all([one.sync(), other.sync()]);
  expect(puts()).toHaveLength(nodes.length);
  const { body } = await other.call('GET', '/pods', { headers: account.key });
  expect(body.map((pod: { status: string }) => pod.status)).toEqual(nodes.map(() => 'RUNNING'));
});

it('polls an idle node once per interval, not once per process', async () => {
  for (const node of nodes) await one.rent(account, node.id);
  for (let round = 0; round < 3; round += 1) await one.sync();
  const both = () => Promise.all([one.sync(), other.sync()]);
  await laterWithBeats(CALM_INTERVAL_MS);
  expect(await listingsDuring(both)).toBe(nodes.length);
  expect(await listingsDuring(both)).toBe(0);
  await laterWithBeats(CALM_INTERVAL_MS);
  expect(await listingsDuring(both)).toBe(nodes.length);
});

it('takes over the claims of dead processes, but no other claims', async () => {
  const [node] = nodes;
  await one.rent(account, node?.id ?? '');
  const { db } = other.ports;
  await other.sync();
  await db.updateTable('sync_turns').set({ boot_id: 'another', due_at: 0 }).execute();
  const beat = { boot_id: 'another', beat_at: one.clock.now() };
  await db.insertInto('central_processes').values(beat).execute();
  await one.clock.advance(LEASE_MS - 1);
  expect(await listingsDuring(() => other.sync())).toBe(0);
  await one.clock.advance(1);
  expect(await listingsDuring(() => other.sync())).toBe(1);
});

it('begins a scheduled removal once', async () => {
  const rented = await one.rent(account, nodes[0]?.id ?? '', { termination_hours: 1 });
  await one.clock.advance(3_600_000);
  await Promise.all([one.sync(), other.sync(), one.sync(), other.sync()]);
  const path = `/pods/${rented.body.id}/events`;
  const { body } = await one.call('GET', path, { headers: account.key });
  const types = body.map((event: { sub_event_type: string }) => event.sub_event_type);
  expect(types.filter((type: string) => type === 'pod-delete.requested')).toHaveLength(1);
});

it('either removes or keeps a pod whose removal is cancelled at the moment at which it becomes due', async () => {
  const ids: string[] = [];
  for (const node of nodes) {
    ids.push((await one.rent(account, node.id, { termination_hours: 1 })).body.id);
  }
  await one.clock.advance(3_600_000);
  const cancel = (id: string) =>
    one.call('DELETE', `/pods/${id}/schedule-removal`, { headers: account.key });
  const [cancelled] = await Promise.all([
    Promise.all(ids.map(cancel)),
    one.central.runDue(),
    other.central.runDue(),
  ]);
  const { body } = await one.call('GET', '/pods', { headers: account.key });
  const kept = body.map((pod: { id: string }) => pod.id);
  for (const [index, { status }] of cancelled.entries()) {
    expect([200, 400, 404]).toContain(status);
    expect(kept.includes(ids[index])).toBe(status === 200);
  }
  // Pods that were kept have not been launched yet, so the limit of their launch stays scheduled.
  const due = await one.ports.db.selectFrom('due_work').select(['kind', 'subject']).execute();
  expect(due.filter(({ kind }) => kind !== 'launch-limit')).toEqual([]);
  expect(kept).toEqual(expect.arrayContaining(due.map(({ subject }) => subject)));
});

it('warns of a scheduled removal once', async () => {
  const rented = await one.rent(account, nodes[0]?.id ?? '', { termination_hours: 2 });
  const path = `/pods/${rented.body.id}/events`;
  const warnings = async () => {
    const { body } = await one.call('GET', path, { headers: account.key });
    return body.filter((event: { detail: string }) => event.detail === 'removal_warning');
  };
  for (const [minutes, count] of [
    [60, 1],
    [50, 2],
  ] as const) {
    await one.clock.advance(minutes * 60_000);
    await Promise.all([one.sync(), other.sync(), one.sync(), other.sync()]);
    expect(await warnings()).toHaveLength(count);
  }
});

it('never assigns a GPU twice or spends money twice for concurrent rentals in both processes', async () => {
  const rich = await one.renter();
  const node = await one.verifiedNode({ gpus: 4, minimum: 1, price: 1.2 });
  const balance = 1_000_000;
  await setAvailable(one.ports.db, balance, rich.id);
  const rents = Array.from({ length: 24 }, (_, index) =>
    (index % 2 === 0 ? one : other).rent(rich, node.id, { gpu_count: 1 }),
  );
  const answers = await Promise.all(rents);
  const served = answers.filter(({ status }) => status === 200);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 403]));
  const pods = await one.ports.db
    .selectFrom('pods')
    .select('id')
    .where('account_id', '=', rich.id)
    .execute();
  expect(pods).toHaveLength(served.length);
  const holds = await openHolds(one.ports.db);
  expect(holds.size).toBe(served.length);
  const { held, available } = await walletOf(one.ports.db, rich.id);
  expect(held).toBe(holds.values().reduce((sum, hold) => sum + hold, 0));
  expect(available).toBe(balance - held);
  const slots = await one.ports.db
    .selectFrom('gpu_slots')
    .select('pod_id')
    .where('executor_id', '=', node.id)
    .execute();
  const taken = slots.flatMap((slot) => slot.pod_id ?? []);
  expect(taken.toSorted()).toEqual(pods.map((pod) => pod.id).toSorted());
});
