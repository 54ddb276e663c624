/** Queries of check policies by hash. Evidence documents contain the hash. */
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import type { StoreDb } from '../store/tables.ts';
import { CheckPolicy, checkPolicyHashOf } from './check-policy.ts';

/** Stores the policy unless it exists. Returns its hash. */
export async function saveCheckPolicy(db: StoreDb, policy: CheckPolicy): Promise<string> {
  const hash = checkPolicyHashOf(policy);
  await db
    .insertInto('check_policies')
    .values({ hash, policy_json: canonicalJson(policy) })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return hash;
}

/** Returns null if the hash is null or unknown, or if the stored text does not match it. */
export async function findCheckPolicy(
  db: StoreDb,
  hash: string | null,
): Promise<CheckPolicy | null> {
  if (hash === null) return null;
  const row = await db
    .selectFrom('check_policies')
    .select('policy_json')
    .where('hash', '=', hash)
    .executeTakeFirst();
  if (row === undefined) return null;
  const parsed = CheckPolicy.safeParse(JSON.parse(row.policy_json));
  return parsed.success && checkPolicyHashOf(parsed.data) === hash ? parsed.data : null;
}
