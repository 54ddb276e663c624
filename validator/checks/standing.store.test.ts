import { afterEach, beforeEach, expect, it } from 'vitest';
import { createTestLedger } from '../../test/fakes/test-ledger.ts';
import { unmeasuredLine } from '../inspection/lines/line.state.ts';
import { findLine, keepLine } from '../inspection/lines/line.store.ts';
import type { Ledger } from '../store/ledger.tables.ts';
import { UNKNOWN_KEY } from './standing.state.ts';
import { accept, claim, claimsOn, findAccepted, forgetOthers } from './standing.store.ts';

let ledger: Ledger;
beforeEach(async () => {
  ledger = await createTestLedger();
});
afterEach(() => ledger.destroy());

it('forgets who has left, whose cards may come back under another executor at once', async () => {
  for (const executorId of ['gone', 'here']) {
    const gpuUuids = [`GPU-${executorId}`];
    const claimant = { executorId, agentKey: 'key', uuids: gpuUuids };
    await claim(ledger, claimant, { nowMs: 2, forgetMs: 0 });
    await accept(ledger, { executorId, listed: 'H100:1', spec: 'H100:1', gpuUuids });
    await keepLine(ledger, unmeasuredLine(executorId));
  }
  const wanted = ['GPU-gone', 'GPU-here'];
  expect(await claimsOn(ledger, wanted)).toHaveLength(2);
  await forgetOthers(ledger, new Set(['here', 'new']));
  expect((await claimsOn(ledger, wanted)).map(({ uuid }) => uuid)).toEqual(['GPU-here']);
  expect(await findAccepted(ledger, 'gone', 'H100:1')).toBeNull();
  expect(await findAccepted(ledger, 'here', 'H100:1')).not.toBeNull();
  expect([await findLine(ledger, 'gone'), (await findLine(ledger, 'here'))?.samples]).toEqual([
    undefined,
    0,
  ]);
});

it('keeps since when a card is claimed while the key is the same, and forgets claims that nobody made for long', async () => {
  const claimAs = (agentKey: string, nowMs: number, forgetMs = 0) =>
    claim(ledger, { executorId: 'one', agentKey, uuids: ['GPU-1'] }, { nowMs, forgetMs });
  const claimed = async () =>
    (await claimsOn(ledger, ['GPU-1'])).map(({ agent_key, first_ms, seen_ms }) => [
      agent_key,
      first_ms,
      seen_ms,
    ]);
  // As one of an older program.
  await claimAs(UNKNOWN_KEY, 1);
  await claimAs('key', 2);
  await claimAs('key', 3);
  expect(await claimed()).toEqual([['key', 1, 3]]);
  await claimAs('other', 4);
  expect(await claimed()).toEqual([['other', 4, 4]]);
  await claim(
    ledger,
    { executorId: 'two', agentKey: 'key', uuids: ['GPU-2'] },
    { nowMs: 9, forgetMs: 5 },
  );
  expect(await claimed()).toEqual([]);
});
