/** Two central APIs on one PostgreSQL database, in one process with one clock. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createTwoMarkets, type TwoMarkets } from '../../../../test/fakes/scenes/two-markets.ts';
import { openHolds, setAvailable } from '../../../../test/fakes/scenes/wallet.ts';
import { walletOf } from '../../money/ledger/wallet.service.ts';
import { createSyncQueue, enterQueue } from './sync-queue.ts';

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

const puts = () =>
  nodes.flatMap(({ id }) => one.agents.host(id).calls.filter((call) => call.startsWith('put')));

it('sends each launch once, regardless of which process received the rental or runs the sync', async () => {
  for (const [index, node] of nodes.entries()) {
    await (index % 2 === 0 ? one : other).rent(account, node.id);
  }
  for (let round = 0; round < 4; round += 1) await Promise.all([one.sync(), other.sync()]);
  expect(puts()).toHaveLength(nodes.length);
  const { body } = await other.call('GET', '/pods', { headers: account.key });
  expect(body.map((pod: { status: string }) => pod.status)).toEqual(nodes.map(() => 'RUNNING'));
});

it('does not wait for the row of a node that another transaction has locked', async () => {
  const [locked, free] = nodes.map(({ id }) => id);
  if (locked === undefined || free === undefined) throw new Error('there are no nodes');
  const { db, clock } = one.ports;
  const processes = { bootId: 'one', others: async () => [] };
  const queue = createSyncQueue({ db, clock, processes });
  const store = async () => undefined;
  const none = { releases: [], wakes: [], running: [], aheadMs: 0, store };
  const limits = { total: 10, unreachable: 10, reserved: 0 };
  for (const id of [locked, free]) await enterQueue(db, id, clock.now());
  const { claims } = await queue.exchange({ ...none, limits });
  expect(claims).toHaveLength(2);
  const releases = claims.map((claim) => ({ ...claim, pauseMs: 0, isEmpty: false }));
  const running = [locked, free];
  await other.ports.db.transaction().execute(async (tx) => {
    await enterQueue(tx, locked, clock.now());
    const first = await queue.exchange({ ...none, limits, releases, running });
    expect(first.releases).toMatchObject([{ executorId: locked }]);
    expect(first.claims).toMatchObject([{ executorId: free }]);
  });
  const left = releases.filter(({ executorId }) => executorId === locked);
  const second = await queue.exchange({ ...none, limits, releases: left, running });
  expect(second).toMatchObject({ claims: [{ executorId: locked }], releases: [] });
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
