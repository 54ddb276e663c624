import { afterEach, beforeEach, expect, it } from 'vitest';
import { createTestLedger } from '../../test/fakes/test-ledger.ts';
import type { Ledger } from '../ledger/ledger.tables.ts';
import { unmeasuredLine } from '../lines/line.state.ts';
import { findLine, keepLine } from '../lines/line.store.ts';
import { accept, claim, claimsOfOthers, findAccepted, forgetOthers } from './standing.store.ts';

let ledger: Ledger;
beforeEach(async () => {
  ledger = await createTestLedger();
});
afterEach(() => ledger.destroy());

const NOW = { nowMs: 2, sinceMs: 1 };

it('forgets who has left, whose cards may come back under another executor at once', async () => {
  for (const executorId of ['gone', 'here']) {
    const gpuUuids = [`GPU-${executorId}`];
    await claim(ledger, { executorId, uuids: gpuUuids }, NOW);
    await accept(ledger, { executorId, listed: 'H100:1', spec: 'H100:1', gpuUuids });
    await keepLine(ledger, unmeasuredLine(executorId));
  }
  const wanted = { executorId: 'new', uuids: ['GPU-gone', 'GPU-here'] };
  expect(await claimsOfOthers(ledger, wanted, NOW.sinceMs)).toHaveLength(2);
  await forgetOthers(ledger, new Set(['here', 'new']));
  expect(await claimsOfOthers(ledger, wanted, NOW.sinceMs)).toEqual([
    { uuid: 'GPU-here', executor_id: 'here' },
  ]);
  expect(await findAccepted(ledger, 'gone', 'H100:1')).toBeNull();
  expect(await findAccepted(ledger, 'here', 'H100:1')).not.toBeNull();
  expect([await findLine(ledger, 'gone'), (await findLine(ledger, 'here'))?.samples]).toEqual([
    undefined,
    0,
  ]);
});
