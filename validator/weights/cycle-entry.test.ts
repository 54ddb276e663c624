import { expect, it } from 'vitest';
import { checkRun } from '../../test/fixtures/check-run.ts';
import { BURN } from '../../test/fixtures/cycle-set.ts';
import { documentOf } from '../evidence/document.ts';
import { cycleEntryOf } from './cycle-entry.ts';

const HASH = '0'.repeat(64);
const PLACE = {
  seq: 1,
  previous: null,
  validator: BURN,
  policyVersion: 1,
  policyHash: HASH,
  checkPolicyHash: HASH,
};

type Wish = { mode: 'shadow' | 'enforce'; message: string; rented?: boolean; before?: boolean };

/** `runtime_proven` of an entry, given the check result and the history. */
function isProven({ mode, message, rented = false, before = false }: Wish): boolean | undefined {
  const document = documentOf(checkRun({ atMs: 1_800_000_000_000, rented }), PLACE);
  const checks = document.checks.map((check) =>
    check.check_id === 'dind_runtime'
      ? { ...check, mode, message, passed: message !== 'failed' }
      : check,
  );
  const past = { failurePpm: 0, uptimeMinutes: 0, runtimeProven: before };
  return cycleEntryOf({ ...document, checks }, HASH, past)?.runtime_proven;
}

it('grants the runtime bonus once the check is enforced, and retains it while the host is rented', () => {
  expect(isProven({ mode: 'enforce', message: 'passed' })).toBe(true);
  expect(isProven({ mode: 'shadow', message: 'passed' })).toBe(false);
  expect(isProven({ mode: 'enforce', message: 'unknown', before: true })).toBe(false);
  expect(isProven({ mode: 'enforce', message: 'failed', before: true })).toBe(false);
  expect(isProven({ mode: 'enforce', message: 'unknown', rented: true, before: true })).toBe(true);
  expect(isProven({ mode: 'enforce', message: 'unknown', rented: true })).toBe(false);
  expect(isProven({ mode: 'shadow', message: 'unknown', rented: true, before: true })).toBe(false);
});
