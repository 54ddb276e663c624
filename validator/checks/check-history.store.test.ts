import { afterEach, beforeEach, expect, it } from 'vitest';
import { createTestStore } from '../../test/fakes/scenes/test-evidence-store.ts';
import { unmeasuredLine } from '../inspection/lines/line.state.ts';
import { findLine, saveLine } from '../inspection/lines/line.store.ts';
import type { EvidenceStore } from '../store/tables.ts';
import {
  accept,
  claim,
  claimsOn,
  deleteOthers,
  findAccepted,
  UNKNOWN_KEY,
} from './check-history.store.ts';

const NONE: ReadonlySet<string> = new Set();

let store: EvidenceStore;
beforeEach(async () => {
  store = await createTestStore();
});
afterEach(() => store.destroy());

it('deletes executors that are not listed, so that another executor may claim their cards at once', async () => {
  for (const executorId of ['gone', 'here']) {
    const gpuUuids = [`GPU-${executorId}`];
    const claimant = { executorId, agentKey: 'key', uuids: gpuUuids, proven: NONE };
    await claim(store, claimant, { nowMs: 2, forgetMs: 0 });
    await accept(store, {
      executorId,
      listed: 'H100:1',
      spec: 'H100:1',
      gpuUuids,
      replaces: false,
    });
    await saveLine(store, unmeasuredLine(executorId));
  }
  const wanted = ['GPU-gone', 'GPU-here'];
  expect(await claimsOn(store, wanted)).toHaveLength(2);
  await deleteOthers(store, new Set(['here', 'new']));
  expect((await claimsOn(store, wanted)).map(({ uuid }) => uuid)).toEqual(['GPU-here']);
  expect(await findAccepted(store, 'gone', 'H100:1')).toBeNull();
  expect(await findAccepted(store, 'here', 'H100:1')).not.toBeNull();
  expect([await findLine(store, 'gone'), (await findLine(store, 'here'))?.samples]).toEqual([
    undefined,
    0,
  ]);
});

it('retains the time of the first claim while the agent’s key is unchanged, and deletes old claims', async () => {
  const claimAs = (agentKey: string, nowMs: number, forgetMs = 0) =>
    claim(
      store,
      { executorId: 'one', agentKey, uuids: ['GPU-1'], proven: NONE },
      { nowMs, forgetMs },
    );
  const claimed = async () =>
    (await claimsOn(store, ['GPU-1'])).map(({ agent_key, first_ms, seen_ms }) => [
      agent_key,
      first_ms,
      seen_ms,
    ]);
  // A claim written by an older version.
  await claimAs(UNKNOWN_KEY, 1);
  await claimAs('key', 2);
  await claimAs('key', 3);
  expect(await claimed()).toEqual([['key', 1, 3]]);
  await claimAs('other', 4);
  expect(await claimed()).toEqual([['other', 4, 4]]);
  await claim(
    store,
    { executorId: 'two', agentKey: 'key', uuids: ['GPU-2'], proven: NONE },
    { nowMs: 9, forgetMs: 5 },
  );
  expect(await claimed()).toEqual([]);
});
