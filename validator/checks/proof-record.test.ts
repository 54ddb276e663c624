/** Which cards have a weight, by the proofs that were offered and passed. */
import { expect, it } from 'vitest';
import { type Change, factsOf, NOW_MS, resultOf } from '../../test/fixtures/check-facts.ts';
import type { GpuProofFacts, ProofRecord } from './measured.ts';
import { provenIn, recordAfter, unprovenIn, weightlessIn } from './proof-record.ts';

const HOUR_MS = 3_600_000;
const UUID = factsOf().inventory?.gpu.devices[0]?.uuid ?? '';

function proofOf(change: Partial<GpuProofFacts> = {}): Change {
  const gpu_proof: GpuProofFacts = {
    device: 'gpu',
    status: 'proven',
    reason: null,
    detail: '',
    ms: 100,
    wall_ms: 100,
    expected_ms: null,
    others: 0,
    cards: [{ uuid: UUID, reason: null, detail: '', roots: [], openings_hash: null }],
    repeated: false,
    ...change,
  };
  return { measured: { gpu_proof } };
}
const PROVEN = proofOf();
const MISSING = proofOf({ status: 'missing', reason: 'GPU_PROOF_MISSING', ms: null, cards: [] });
const NOT_OFFERED: Change = {};

/** Records one run every hour. */
function after(changes: readonly Change[], before: ProofRecord | null = null): ProofRecord | null {
  return changes.reduce<ProofRecord | null>((record, change, hour) => {
    return recordAfter(record, { ...factsOf(change), receivedMs: NOW_MS + hour * HOUR_MS });
  }, before);
}
const hours = (count: number, change: Change) => Array.from({ length: count }, () => change);
const unprovenAfter = (changes: readonly Change[]) => {
  const record = after(changes);
  return record === null ? null : unprovenIn(record);
};

it('sets the weight of a card to 0 that was offered proofs and never passed one', () => {
  expect(unprovenAfter([MISSING])).toEqual([UUID]);
  expect(unprovenAfter([MISSING, PROVEN])).toEqual([]);
});

it('keeps a proof valid until the card was offered others for a day', () => {
  expect(unprovenAfter([PROVEN, ...hours(24, MISSING)])).toEqual([]);
  expect(unprovenAfter([PROVEN, ...hours(25, MISSING)])).toEqual([UUID]);
});

it('takes nothing for proofs that the validator did not offer', () => {
  expect(unprovenAfter(hours(100, NOT_OFFERED))).toEqual([]);
  expect(unprovenAfter([PROVEN, ...hours(100, NOT_OFFERED)])).toEqual([]);
  expect(unprovenAfter(hours(100, { ...MISSING, rented: true }))).toBeNull();
});

it('keeps the state before a rental while the rental lasts', () => {
  const rented = hours(100, { rented: true });
  expect(unprovenAfter([PROVEN, ...rented])).toEqual([]);
  expect(unprovenAfter([MISSING, ...rented])).toEqual([UUID]);
  expect(unprovenAfter([PROVEN, ...rented, MISSING])).toEqual([]);
});

it('does not accept a proof that is too slow, and does not count a repeated one', () => {
  expect(unprovenAfter([proofOf({ ms: 900, expected_ms: 100 })])).toEqual([UUID]);
  const repeated = proofOf({ ms: 900, expected_ms: 100, repeated: true });
  expect(unprovenAfter([repeated])).toEqual([]);
});

it('does not accept a proof that is slower than the model of the card, or of an unlisted model', () => {
  const { name } = factsOf().inventory?.gpu.devices[0] ?? {};
  const speed = { int8_tops: 1_979, source: 'a test', measured_ms: 2_000 };
  const under = (card_times: Record<string, typeof speed>, ms: number) =>
    unprovenAfter([{ ...proofOf({ ms }), checks: { card_times } }]);
  const listed = { [name ?? '']: speed };
  expect([under(listed, 5_300), under(listed, 5_500)]).toEqual([[], [UUID]]);
  expect(under({ 'another model': speed }, 100)).toEqual([UUID]);
});

it('counts cards without weight, and changes no verdict', () => {
  const record = after([MISSING]);
  if (record === null) throw new Error('no record');
  const [processor] = record.devices;
  const slow = { ...record, devices: [{ device: 'cpu', offered_ms: NOW_MS, proven_ms: null }] };
  expect([weightlessIn(8, record), weightlessIn(8, slow), processor?.device]).toEqual([
    1,
    8,
    'cpu',
  ]);
  expect([provenIn(record), provenIn(after([PROVEN])), provenIn(null)]).toEqual([[], [UUID], []]);
  expect(resultOf('proof_age', factsOf({ measured: { proof_record: record } }))).toMatchObject({
    passed: false,
    reason_code: 'PROOF_MISSING',
    mode: 'observe',
    verdict: 'verified',
  });
});
