import { afterEach, beforeEach, expect, it } from 'vitest';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { mayMove, POD_STATES, type PodState } from './pod.state.ts';
import { changePod, findPod, movePod, type PodMove } from './pod.store.ts';

let market: TestMarket;
let id: string;
beforeEach(async () => {
  market = await createTestMarket();
  const node = await market.verifiedNode();
  id = (await market.rent(await market.renter(), node.id)).body.id;
});
afterEach(() => market.close());

async function put(state: PodState, endedAt: number | null = null): Promise<void> {
  const row = { state, ended_at: endedAt };
  await market.ports.db.updateTable('pods').set(row).where('id', '=', id).execute();
}

function move(to: PodState, change: Partial<PodMove> = {}, from?: readonly PodState[]) {
  const at = { updated_at: market.clock.now(), ...change };
  const options = from === undefined ? {} : { from };
  return market.ports.db.transaction().execute((tx) => movePod(tx, id, to, at, options));
}

const stateNow = async () => (await findPod(market.ports.db, id))?.state;

it('makes exactly the state changes that pod.state.ts allows', async () => {
  for (const from of POD_STATES) {
    for (const to of POD_STATES) {
      await put(from);
      const isMoved = await move(to, { message: to });
      expect([from, to, isMoved]).toEqual([from, to, mayMove(from, to)]);
      expect(await stateNow()).toBe(isMoved ? to : from);
    }
  }
});

it('does not change ended pods, or pods in a state other than the expected one', async () => {
  const { db } = market.ports;
  await put('running', 1);
  expect(await move('deleting')).toBe(false);
  expect(await changePod(db, id, POD_STATES, { message: 'late' })).toBe(false);
  await put('running');
  expect(await move('deleting', {}, ['pending', 'pulling'])).toBe(false);
  // `from` cannot allow a move that the table of moves forbids.
  expect(await move('creation_failed', {}, ['running'])).toBe(false);
  expect(await stateNow()).toBe('running');
});
