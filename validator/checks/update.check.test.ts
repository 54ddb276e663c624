import { describe, expect, it } from 'vitest';
import type { UpdateStatus } from '#shared/api/agent/update-status.ts';
import { checkRun } from '../../test/fixtures/check-run.ts';
import { digestOf } from '../../test/fixtures/update-manifest.ts';
import { updateStatus } from '../../test/fixtures/update-status.ts';
import type { Check, CheckOutcome } from './check.ts';
import type { ReleaseFacts } from './measured.ts';
import { agentUpdate, imageDigest } from './update.check.ts';

const NOW_MS = 1_800_000_000_000;
const HOUR_MS = 3_600_000;
const RELEASES: ReleaseFacts = {
  target: digestOf('b'),
  sequence: 2,
  is_known: true,
  rollout_permille: 1_000,
  grace_until_ms: NOW_MS,
};

type Judged = { update?: Partial<UpdateStatus> | null; releases?: Partial<ReleaseFacts> | null };

function judged({ judge }: Check, { update = {}, releases = {} }: Judged): CheckOutcome {
  const { facts } = checkRun({ atMs: NOW_MS });
  if (facts.inventory === null) throw new Error('no inventory');
  const status = update === null ? null : { ...updateStatus(digestOf('b'), NOW_MS), ...update };
  return judge({
    ...facts,
    inventory: { ...facts.inventory, update: status },
    measured: { ...facts.measured, releases: releases && { ...RELEASES, ...releases } },
  });
}

const codeOf = (outcome: CheckOutcome) =>
  outcome.status === 'fail' ? outcome.reasonCode : outcome.status;
const OLD = { current_digest: digestOf('a') };

describe('the image of an agent', () => {
  it.each<[string, Judged, string]>([
    ['is the newest', {}, 'ok'],
    [
      'was never signed',
      { update: { current_digest: digestOf('e') }, releases: { is_known: false } },
      'AGENT_IMAGE_FOREIGN',
    ],
    ['is older', { update: OLD }, 'AGENT_IMAGE_OUTDATED'],
    [
      'is older within the grace period',
      { update: OLD, releases: { grace_until_ms: NOW_MS + 1 } },
      'warn',
    ],
    [
      'is older during a partial rollout',
      { update: OLD, releases: { rollout_permille: 999 } },
      'warn',
    ],
    ['is not reported', { update: { current_digest: null } }, 'unknown'],
    ['is of an agent with another kind of installation', { update: { kind: null } }, 'unknown'],
    ['is of an agent that reports no update status', { update: null }, 'unknown'],
    ['cannot be compared because no release is signed', { releases: null }, 'unknown'],
  ])('judges an image that %s', (_, change, code) => {
    expect(codeOf(judged(imageDigest, change))).toBe(code);
  });
});

describe('an update', () => {
  it.each<[string, Judged, string]>([
    ['is not under way', {}, 'ok'],
    ['waits for its turn in the rollout', { update: { reason: 'NOT_YET' } }, 'ok'],
    [
      'waits for a launch',
      { update: { state: 'VERIFIED', reason: 'BUSY', since_ms: NOW_MS } },
      'ok',
    ],
    [
      'waits for three hours',
      { update: { state: 'VERIFIED', reason: 'BUSY', since_ms: NOW_MS - 3 * HOUR_MS } },
      'AGENT_UPDATE_STUCK',
    ],
    [
      'lacks disk space',
      { update: { state: 'PREFLIGHT', reason: 'NO_SPACE', since_ms: NOW_MS } },
      'AGENT_UPDATE_STUCK',
    ],
    ['is refused', { update: { reason: 'SIGNATURE_BAD' } }, 'AGENT_UPDATE_STUCK'],
    [
      'was not checked for three hours',
      { update: { last_check_ms: NOW_MS - 3 * HOUR_MS } },
      'AGENT_UPDATE_STUCK',
    ],
    [
      'is paused',
      { update: { state: 'VERIFIED', reason: 'MAINTENANCE_HOLD' } },
      'AGENT_UPDATE_HELD',
    ],
    [
      'was rolled back',
      { update: { state: 'ROLLED_BACK', reason: 'NEW_VERSION_ENDED' } },
      'AGENT_UPDATE_ROLLED_BACK',
    ],
    ['does not apply', { update: { kind: null } }, 'unknown'],
  ])('judges an update that %s', (_, change, code) => {
    expect(codeOf(judged(agentUpdate, change))).toBe(code);
  });

  it('reports why an update was rolled back', () => {
    const update = {
      state: 'ROLLED_BACK',
      reason: 'NEW_VERSION_ENDED',
      message: 'no library',
    } as const;
    expect(judged(agentUpdate, { update })).toMatchObject({
      measured: 'ROLLED_BACK NEW_VERSION_ENDED',
      message: expect.stringContaining('no library'),
    });
  });
});
