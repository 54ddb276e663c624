/** What another policy would have made of stored cycles: a look at it before it counts (validator reference 8.1). */
import type { LatestSetWeights } from '#shared/central-api/set-weights.ts';
import type { EpochRow, Ledger } from '../ledger/ledger.tables.ts';
import { computeWeights } from './compute-weights.ts';
import type { Posted } from './explain.ts';
import { storedInput } from './replay.ts';
import type { WeightPolicy } from './weight-policy.ts';

/** One line for each uid, as posted and as it would have been; null without a registered burn recipient. */
export async function weightsUnder(
  ledger: Ledger,
  stored: EpochRow,
  policy: WeightPolicy,
): Promise<string[] | null> {
  const { input } = await storedInput(ledger, stored);
  const result = computeWeights(input, policy);
  if (result === null) return null;
  // Written by us as a payload: its form is known.
  const posted = JSON.parse(stored.payload_json) as LatestSetWeights;
  const uids = [...new Set([...posted.uids, ...result.uids])].sort((a, b) => a - b);
  const weightOf = (of: Posted, uid: number) => of.weights[of.uids.indexOf(uid)] ?? 0;
  return [
    `policy ${stored.policy_hash} -> ${result.policyHash}`,
    ...uids.map((uid) => `uid ${uid}: ${weightOf(posted, uid)} -> ${weightOf(result, uid)}`),
  ];
}
