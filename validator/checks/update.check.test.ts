import { describe, expect, it } from 'vitest';
import type { UpdateStatus } from '#shared/api/agent/update-status.ts';
import { checkRun } from '../../test/fixtures/check-run.ts';
import { digestOf } from '../../test/fixtures/update-manifest.ts';
import { updateStatus } from '../../test/fixtures/update-status.ts';
import type { Outcome } from './check.ts';
import type { ReleaseFacts } from './measured.ts';
import { judgeImageDigest, judgeUpdate } from './update.check.ts';

const NOW_MS = 1_800_000_000_000;
const HOUR_MS = 3_600_000;
const RELEASES: ReleaseFacts = {
  ...{ target: digestOf('b'), sequence: 2, is_known: true },
  ...{ rollout_permille: 1_000, grace_until_ms: NOW_MS },
};

type Judged = { update?: Partial<UpdateStatus> | null; releases?: Partial<ReleaseFacts> | null };

function judged(judge: typeof judgeUpdate, { update = {}, releases = {} }: Judged): Outcome {
  const { facts } = checkRun({ atMs: NOW_MS });
  if (facts.inventory === null) throw new Error('no inventory');
  const status = update === null ? null : { ...updateStatus(digestOf('b'), NOW_MS), ...update };
  return judge({
    ...facts,
    inventory: { ...facts.inventory, update: status },
    measured: { ...facts.measured, releases: releases && { ...RELEASES, ...releases } },
  });
}

const codeOf = (outcome: Outcome) =>
  outcome.status === 'failed' ? outcome.reasonCode : outcome.status;
const OLD = { current_digest: digestOf('a') };

describe('the image of an agent', () => {
  it.each<[string, Judged, string]>([
    ['is the newest', {}, 'passed'],
    [
      'is none that was signed',
      { update: { current_digest: digestOf('e') }, releases: { is_known: false } },
      'AGENT_IMAGE_FOREIGN',
    ],
    ['is older', { update: OLD }, 'AGENT_IMAGE_OUTDATED'],
    [
      'is older within the grace',
      { update: OLD, releases: { grace_until_ms: NOW_MS + 1 } },
      'passed',
    ],
    [
      'is older in a rollout by share',
      { update: OLD, releases: { rollout_permille: 999 } },
      'passed',
    ],
    ['is not told', { update: { current_digest: null } }, 'unknown'],
    ['is of an agent that is installed otherwise', { update: { kind: null } }, 'unknown'],
    ['is of an agent that does not tell', { update: null }, 'unknown'],
    ['is compared with nothing', { releases: null }, 'unknown'],
  ])('%s', (_, change, code) => {
    expect(codeOf(judged(judgeImageDigest, change))).toBe(code);
  });
});

describe('an update', () => {
  it.each<[string, Judged, string]>([
    ['is not under way', {}, 'passed'],
    ['waits for its share', { update: { reason: 'NOT_YET' } }, 'passed'],
    [
      'waits for a launch',
      { update: { state: 'VERIFIED', reason: 'BUSY', since_ms: NOW_MS } },
      'passed',
    ],
    [
      'waits for long',
      { update: { state: 'VERIFIED', reason: 'BUSY', since_ms: NOW_MS - 3 * HOUR_MS } },
      'AGENT_UPDATE_STUCK',
    ],
    [
      'finds no room',
      { update: { state: 'PREFLIGHT', reason: 'NO_SPACE', since_ms: NOW_MS } },
      'AGENT_UPDATE_STUCK',
    ],
    ['is refused', { update: { reason: 'SIGNATURE_BAD' } }, 'AGENT_UPDATE_STUCK'],
    [
      'was not looked for',
      { update: { last_check_ms: NOW_MS - 3 * HOUR_MS } },
      'AGENT_UPDATE_STUCK',
    ],
    ['is held', { update: { state: 'VERIFIED', reason: 'MAINTENANCE_HOLD' } }, 'AGENT_UPDATE_HELD'],
    [
      'was rolled back',
      { update: { state: 'ROLLED_BACK', reason: 'NEW_VERSION_ENDED' } },
      'AGENT_UPDATE_ROLLED_BACK',
    ],
    ['is nobody’s business', { update: { kind: null } }, 'unknown'],
  ])('%s', (_, change, code) => {
    expect(codeOf(judged(judgeUpdate, change))).toBe(code);
  });

  it('that was rolled back says why', () => {
    const update = {
      state: 'ROLLED_BACK',
      reason: 'NEW_VERSION_ENDED',
      message: 'no library',
    } as const;
    expect(judged(judgeUpdate, { update })).toMatchObject({
      measured: 'ROLLED_BACK NEW_VERSION_ENDED',
      message: expect.stringContaining('no library'),
    });
  });
});
