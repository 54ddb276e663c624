import { describe, expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import type { UpdateManifest } from '#shared/updates/update-manifest.ts';
import {
  AGENT_IMAGE,
  digestOf,
  NOW_MS,
  signedDigest,
  validatorKey,
} from '../../test/fixtures/update-manifest.ts';
import { judgeAnswer, type ManifestFacts, rolloutPosition } from './manifest-rules.ts';

const CONTROL = { hotkey: validatorKey.hotkey, roles: ['validator-control'] as const };
const other = createSigner(new Uint8Array(32).fill(8));

/** Facts about an agent that accepted sequence 6, digest `a…`, and runs it. */
const FACTS: ManifestFacts = {
  keys: [CONTROL],
  root: null,
  nowMs: NOW_MS + 1_000,
  image: AGENT_IMAGE,
  executorId: '3f9f41a6-0001-4000-8000-000000000001',
  agentVersion: '0.1.0',
  platform: 'linux/amd64',
  running: [digestOf('a')],
  row: { sequence: 6, digest: digestOf('a'), target: null, denied_until_ms: 0, trust: null },
};

const rule = (change: Partial<UpdateManifest>, facts: Partial<ManifestFacts> = {}) =>
  judgeAnswer(signedDigest(change), { ...FACTS, ...facts }).ruling;
const refused = (reason: string) => ({ outcome: 'refused', reason });
const accepted = (sequence: number, digit: string) => ({
  outcome: 'accepted',
  target: { sequence, digest: digestOf(digit) },
});
const having = (sequence: number, digit: string): Partial<ManifestFacts> => ({
  running: [digestOf(digit)],
  row: { ...FACTS.row, sequence, digest: digestOf(digit) },
});

describe('a manifest', () => {
  it.each<[string, Partial<UpdateManifest>, Partial<ManifestFacts>, object]>([
    ['that is newer is accepted', {}, {}, accepted(7, 'b')],
    [
      'of the running version is current',
      {},
      having(6, 'b'),
      { ...accepted(7, 'b'), outcome: 'current' },
    ],
    ['of another image is refused', { image: 'evil.example/agent' }, {}, refused('IMAGE_OTHER')],
    ['that has expired is refused', { expiresAt: NOW_MS }, {}, refused('EXPIRED')],
    ['issued in the future is refused', { issuedAt: NOW_MS + 700_000 }, {}, refused('EXPIRED')],
    [
      'valid for more than seven days is refused',
      { expiresAt: NOW_MS + 604_800_001 },
      {},
      refused('LIFETIME_TOO_LONG'),
    ],
    ['up to a thousand sequences later is accepted', { sequence: 1_006 }, {}, accepted(1_006, 'b')],
    ['of a later sequence is refused', { sequence: 1_007 }, {}, refused('SEQUENCE_JUMP')],
    [
      'of any sequence is accepted by a new agent',
      { sequence: 5_000 },
      having(0, 'a'),
      accepted(5_000, 'b'),
    ],
    ['of a lower sequence is refused', {}, having(8, 'e'), refused('SEQUENCE_OLD')],
    [
      'of a lower sequence is refused even as a rollback',
      { rollbackTo: { digest: digestOf('a'), reason: 'x' } },
      having(8, 'e'),
      refused('SEQUENCE_OLD'),
    ],
    [
      'of the same sequence with another digest is refused',
      {},
      having(7, 'e'),
      refused('SEQUENCE_OLD'),
    ],
    [
      'of the same sequence and digest is accepted again',
      {},
      { row: { ...FACTS.row, sequence: 7, digest: digestOf('b') } },
      accepted(7, 'b'),
    ],
    [
      'that rolls back is accepted with the same sequence',
      { rollbackTo: { digest: digestOf('a'), reason: 'broken' } },
      having(7, 'b'),
      accepted(7, 'a'),
    ],
    ['that the validator rolled back is refused', {}, having(7, 'a'), refused('SEQUENCE_OLD')],
    ['that requires a newer agent is refused', { minAgent: '0.2.0' }, {}, refused('AGENT_TOO_OLD')],
    [
      'that lists only other platforms is refused',
      {},
      { platform: 'linux/riscv64' },
      refused('PLATFORM_MISSING'),
    ],
    [
      'that lists a variant of the platform is accepted',
      {},
      { platform: 'linux/arm64' },
      accepted(7, 'b'),
    ],
    [
      'that lists no platforms is accepted',
      { platforms: {} },
      { platform: 'linux/riscv64' },
      accepted(7, 'b'),
    ],
    ['not yet rolled out to the agent waits', { rolloutPermille: 0 }, {}, refused('NOT_YET')],
    [
      'not yet rolled out to the agent is accepted by an agent below minSequence',
      { rolloutPermille: 0, minSequence: 7 },
      {},
      accepted(7, 'b'),
    ],
    [
      'that rolls back does not wait for the rollout',
      { rolloutPermille: 0, rollbackTo: { digest: digestOf('e'), reason: 'x' } },
      {},
      accepted(7, 'e'),
    ],
    [
      'of a version that was rolled back on this host waits',
      {},
      {
        row: {
          ...FACTS.row,
          target: { sequence: 7, digest: digestOf('b') },
          denied_until_ms: NOW_MS + 2_000,
        },
      },
      refused('BACKING_OFF'),
    ],
    ['signed by an unknown key is refused', {}, { keys: [] }, refused('KEY_UNKNOWN')],
    [
      'signed by a key without the role validator-control is refused',
      {},
      { keys: [{ ...CONTROL, roles: ['validator-read'] }] },
      refused('KEY_UNKNOWN'),
    ],
    [
      'signed by a key that is not yet valid is refused',
      {},
      { keys: [{ ...CONTROL, notBeforeMs: NOW_MS + 2_000 }] },
      refused('KEY_NOT_VALID'),
    ],
    [
      'signed by an expired key is refused',
      {},
      { keys: [{ ...CONTROL, notAfterMs: NOW_MS }] },
      refused('KEY_NOT_VALID'),
    ],
  ])('%s', (_, change, facts, ruling) => {
    expect(rule(change, facts)).toEqual(ruling);
  });

  it('that was altered is refused', () => {
    const signed = signedDigest();
    const altered = { ...signed, manifest: { ...signed.manifest, rolloutPermille: 999 } };
    expect(judgeAnswer(altered, FACTS).ruling).toEqual(refused('SIGNATURE_BAD'));
  });

  it('signed by another key under the hotkey of a trusted key is refused', () => {
    const [signature] = signedDigest({}, other).signatures;
    const forged = {
      ...signedDigest(),
      signatures: [{ ...signature, ss58: CONTROL.hotkey, keyId: CONTROL.hotkey }],
    };
    expect(judgeAnswer(forged, FACTS).ruling).toEqual(refused('SIGNATURE_BAD'));
  });

  it('is accepted with one valid signature among invalid ones', () => {
    const signed = signedDigest();
    const both = {
      ...signed,
      signatures: [...signedDigest({}, other).signatures, ...signed.signatures],
    };
    expect(judgeAnswer(both, FACTS).ruling).toEqual(accepted(7, 'b'));
  });

  it('may name its key by the id in the key set, but by no other id', () => {
    const keys = [{ ...CONTROL, keyId: '2027' }];
    const named = (keyId: string) =>
      judgeAnswer(signedDigest({}, validatorKey, keyId), { ...FACTS, keys }).ruling;
    expect([named('2027'), named('2026')]).toEqual([accepted(7, 'b'), refused('KEY_UNKNOWN')]);
  });

  it.each([
    ['null', null],
    ['a body without manifest', { digest: digestOf('b'), timestamp: 1, signature: '0x' }],
    ['a fraction', { ...signedDigest(), manifest: { ...signedDigest().manifest, sequence: 7.5 } }],
    ['an unknown member', { ...signedDigest(), manifest: { ...signedDigest().manifest, more: 1 } }],
    ['an umlaut', { ...signedDigest(), manifest: { ...signedDigest().manifest, notes: 'ü' } }],
  ])('is refused as malformed: %s', (_, answer) => {
    expect(judgeAnswer(answer, FACTS).ruling).toEqual(refused('MANIFEST_MALFORMED'));
  });
});

it('includes a tenth of the agents in a rollout of 100 permille, and different agents for the next sequence', () => {
  const agents = Array.from({ length: 4_000 }, () => systemRandom.uuid());
  const early = (sequence: number) => agents.filter((id) => rolloutPosition(id, sequence) < 100);
  const [first, second] = [early(1), early(2)];
  // Four standard deviations of the binomial distribution: 4 × 19.
  expect(Math.abs(first.length - 400)).toBeLessThan(76);
  const both = first.filter((id) => second.includes(id));
  expect(both.length).toBeLessThan(100);
});
