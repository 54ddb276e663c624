/** What another policy would have made of stored cycles: a look at it before it counts (validator reference 8.1). */
import type { EpochRow, Ledger } from '../store/ledger.tables.ts';
import { readPosted, uidsOf, weightOf } from './epoch-record.ts';
import { weighStored } from './replay.ts';
import type { WeightPolicy } from './weight-policy.ts';

/** One line for each uid, as posted and as it would have been; null without a registered burn recipient. */
export async function weightsUnder(
  ledger: Ledger,
  stored: EpochRow,
  policy: WeightPolicy,
): Promise<string[] | null> {
  const { head, missing, weigher } = await weighStored(ledger, stored, policy);
  const result = weigher.result(head);
  if (result === null) return null;
  const posted = readPosted(stored);
  return [
    ...missing.map((number) => `without cycle ${number}, which is not kept any more`),
    `policy ${stored.policy_hash} -> ${result.policyHash}`,
    ...uidsOf(posted, result).map(
      (uid) => `uid ${uid}: ${weightOf(posted, uid)} -> ${weightOf(result, uid)}`,
    ),
  ];
}
