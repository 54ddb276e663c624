/** Weights as they are stored and posted, and the way back from what is stored to what they were computed from. Pure. */
import { z } from 'zod';
import { type LatestSetWeights, LatestSetWeightsRequest } from '#shared/api/central/set-weights.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { canonicalJson, parseCanonicalJson } from '#shared/signing/canonical-json.ts';
import type { EpochRow } from '../store/tables.ts';
import type { WeightResult } from './compute-weights.ts';
import { CycleSet } from './cycle-set.ts';
import type { EpochLink, UnsignedEpoch } from './epoch-chain.ts';
import { WeightPolicy } from './weight-policy.ts';

/** The input with the numbers of its cycles, oldest first: they are stored once, and not again for each epoch. */
export const StoredInput = z.strictObject({
  ...CycleSet.shape,
  cycles: z.array(z.int()),
});
export type StoredInput = z.output<typeof StoredInput>;

/**
 * What a stored epoch was computed from. Throws Error that names the epoch where the row says nothing any more that
 * this program could have written.
 */
export function readInput({ number, input_json: text }: EpochRow): StoredInput {
  const input = StoredInput.safeParse(parseCanonicalJson(text)?.value).data;
  if (input?.epoch === number) return input;
  throw damaged(number, 'input_json');
}

/** The policy that it was computed by. Throws Error as above. */
export function readPolicy({ number, policy_json: text }: EpochRow): WeightPolicy {
  const policy = WeightPolicy.safeParse(parseCanonicalJson(text)?.value).data;
  if (policy !== undefined) return policy;
  throw damaged(number, 'policy_json');
}

/** What was to be posted of it. Throws Error as above. */
export function readPosted({ number, payload_json: text }: EpochRow): LatestSetWeights {
  const payload = LatestSetWeightsRequest.safeParse(parseCanonicalJson(text)?.value).data;
  if (payload !== undefined) return payload;
  throw damaged(number, 'payload_json');
}

function damaged(number: number, column: string): Error {
  return new Error(
    `epoch ${number}: epochs.${column} was altered or damaged, so that nothing can be computed from it; ` +
      `only a copy of the ledger from before has it. Other epochs are not concerned`,
  );
}

export type ComputedEpoch = {
  input: StoredInput;
  policy: WeightPolicy;
  result: WeightResult;
  posted: Posting;
};

/** What a payload says beside its weights: of the chain, the time and the program. */
export type Posting = { block: number | null; computedMs: number; versionKey: number };

/** After the one that `link` names. Canonical, so that whoever computes it again can compare byte for byte. */
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
    payload_json: canonicalJson(payloadOf(policy, result, posted)),
  };
}

/** What is posted of a result (validator reference 8.3). */
export function payloadOf(
  { netuid }: WeightPolicy,
  { uids, weights }: Pick<WeightResult, 'uids' | 'weights'>,
  { block, computedMs, versionKey }: Posting,
): LatestSetWeights {
  return {
    netuid,
    uids,
    weights,
    version_key: versionKey,
    wait_for_finalization: false,
    wait_for_inclusion: false,
    current_block: block,
    updated_at: `${naiveUtc(computedMs)}Z`,
  };
}

/** What was posted: uids and weights side by side. */
export type Posted = { uids: readonly number[]; weights: readonly number[] };

/** 0 for a uid that is not in it. */
export const weightOf = ({ uids, weights }: Posted, uid: number): number =>
  weights[uids.indexOf(uid)] ?? 0;

/** The uids of either, ascending. */
export const uidsOf = (...posted: readonly Posted[]): number[] =>
  [...new Set(posted.flatMap(({ uids }) => uids))].sort((a, b) => a - b);

/** `1.2.3` is 1203. */
export function versionKeyOf(version: string): number {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  return major * 1_000 + minor * 100 + patch;
}
