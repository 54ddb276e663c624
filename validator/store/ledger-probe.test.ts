import { expect, it } from 'vitest';
import { openLedger } from './ledger.ts';
import { problemOfLedger } from './ledger-probe.ts';

it('finds a ledger that takes and gives, and one that does not', async () => {
  const ledger = await openLedger(':memory:');
  expect(await problemOfLedger(ledger)).toBeNull();
  await ledger.destroy();
  expect(await problemOfLedger(ledger)).toMatch(/destroyed|closed|not open/);
});
