/** Two central APIs on one PostgreSQL database, in one process with one clock. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createTwoMarkets, type TwoMarkets } from '../../../../test/fakes/scenes/two-markets.ts';
import { LEASE_MS } from '../../platform/processes.ts';

const CALM_INTERVAL_MS = 10_000;

let markets: TwoMarkets;
let one: TwoMarkets['one'];
let other: TwoMarkets['other'];
let nodes: TwoMarkets['nodes'];
let account: TwoMarkets['account'];
beforeEach(async () => {
  markets = await createTwoMarkets();
  ({ one, other, nodes, account } = markets);
});
afterEach(() => markets.close());

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
