/** Conversion between computed weights, the stored epoch row and the posted payload. Pure. */
import { z } from 'zod';
import { type LatestSetWeights, LatestSetWeightsRequest } from '#shared/api/central/set-weights.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { canonicalJson, parseCanonicalJson } from '#shared/signing/canonical-json.ts';
import type { EpochRow } from '../store/tables.ts';
import type { WeightResult } from './compute-weights.ts';
import { CycleSet } from './cycle-set.ts';
import type { EpochLink, UnsignedEpoch } from './epoch-chain.ts';
import { WeightPolicy } from './weight-policy.ts';

/** A CycleSet with cycle numbers, oldest first, instead of the cycles, which are stored once. */
export const StoredInput = z.strictObject({
  ...CycleSet.shape,
  cycles: z.array(z.int()),
});
export type StoredInput = z.output<typeof StoredInput>;

/** Input of a stored epoch. Throws an error that names the epoch if the row was altered or damaged. */
export function readInput({ number, input_json: text }: EpochRow): StoredInput {
  const input = StoredInput.safeParse(parseCanonicalJson(text)?.value).data;
  if (input?.epoch === number) return input;
  throw damagedEpoch(number, 'input_json');
}

/** Policy of a stored epoch. Throws as `readInput` does. */
export function readPolicy({ number, policy_json: text }: EpochRow): WeightPolicy {
  const policy = WeightPolicy.safeParse(parseCanonicalJson(text)?.value).data;
  if (policy !== undefined) return policy;
  throw damagedEpoch(number, 'policy_json');
}

/** Payload of a stored epoch. Throws as `readInput` does. */
export function readPayload({ number, payload_json: text }: EpochRow): LatestSetWeights {
  const payload = LatestSetWeightsRequest.safeParse(parseCanonicalJson(text)?.value).data;
  if (payload !== undefined) return payload;
  throw damagedEpoch(number, 'payload_json');
}

function damagedEpoch(number: number, column: string): Error {
  return new Error(
    `epoch ${number}: epochs.${column} was altered or damaged and cannot be recomputed; ` +
      `restore it from a backup of the evidence store. Other epochs are not affected`,
  );
}

export type ComputedEpoch = {
  input: StoredInput;
  policy: WeightPolicy;
  result: WeightResult;
  posted: Posting;
};

/** Payload fields other than the weights. */
export type Posting = { block: number | null; computedMs: number; versionKey: number };

/**
 * Posting with the time that it states: the end of the newest cycle, so that validators with the same data post the
 * same bytes. Epochs of older versions state the time of the computation.
 */
type TimedPosting = Omit<Posting, 'computedMs'> & { updatedMs: number };

/** Row of a computed epoch that follows `link`. All JSON is canonical, so a replay compares byte for byte. */
export function epochRow(
  { input, policy, result, posted }: ComputedEpoch,
  link: EpochLink,
): UnsignedEpoch {
  return {
    previous: link.previous,
    first_kept: link.first_kept,
    number: input.epoch,
    computed_ms: posted.computedMs,
    state: 'queued',
    input_json: canonicalJson(input),
    policy_json: canonicalJson(policy),
    input_hash: result.inputHash,
    policy_hash: result.policyHash,
    result_hash: result.resultHash,
    payload_json: canonicalJson(
      payloadOf(policy, result, {
        ...posted,
        updatedMs: input.window?.ends_ms ?? posted.computedMs,
      }),
    ),
  };
}

/** Payload that is posted to the central API. */
export function payloadOf(
  { netuid }: WeightPolicy,
  { uids, weights }: Pick<WeightResult, 'uids' | 'weights'>,
  { block, updatedMs, versionKey }: TimedPosting,
): LatestSetWeights {
  return {
    netuid,
    uids,
    weights,
    version_key: versionKey,
    wait_for_finalization: false,
    wait_for_inclusion: false,
    current_block: block,
    updated_at: `${naiveUtc(updatedMs)}Z`,
  };
}

/** Uids and weights; equal indexes belong together. */
export type PostedWeights = { uids: readonly number[]; weights: readonly number[] };

/** Weight of a uid; 0 if the uid has no weight. */
export const weightOf = ({ uids, weights }: PostedWeights, uid: number): number =>
  weights[uids.indexOf(uid)] ?? 0;

/** Union of the uids, ascending. */
export const uidsOf = (...posted: readonly PostedWeights[]): number[] =>
  [...new Set(posted.flatMap(({ uids }) => uids))].sort((a, b) => a - b);

/** `1.2.3` becomes 1203. */
export function versionKeyOf(version: string): number {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  return major * 1_000 + minor * 100 + patch;
}
