/** Queries of check policies by hash. Evidence documents contain the hash. */
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { columnsFrom, prepared, type Slots } from '../store/prepared.ts';
import type { CheckPoliciesTable, StoreDb } from '../store/tables.ts';
import { CheckPolicy, checkPolicyHashOf } from './check-policy.ts';

const save = prepared((db, policy: Slots<CheckPoliciesTable>) =>
  db
    .insertInto('check_policies')
    .values(columnsFrom(policy, ['hash', 'policy_json']))
    .onConflict((conflict) => conflict.doNothing()),
);

/** Returns the row of a policy. */
export function checkPolicyRow(policy: CheckPolicy): CheckPoliciesTable {
  return { hash: checkPolicyHashOf(policy), policy_json: canonicalJson(policy) };
}

/** Stores the policy unless it exists. */
export async function saveCheckPolicy(db: StoreDb, row: CheckPoliciesTable): Promise<void> {
  await save(db, row);
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

/** Returns a cached `findCheckPolicy` that reads and parses each policy once. Stored policies do not change. */
export function createPolicyCache(db: StoreDb) {
  const policies = new Map<string | null, CheckPolicy | null>();
  return async (hash: string | null): Promise<CheckPolicy | null> => {
    const known = policies.get(hash);
    if (known !== undefined) return known;
    const policy = await findCheckPolicy(db, hash);
    policies.set(hash, policy);
    return policy;
  };
}
