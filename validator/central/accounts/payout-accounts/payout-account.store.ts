/** Queries on the columns of accounts that concern payouts by the payment processor. */
import type { Db } from '../../platform/database/tables.ts';

/** Stores the account's id at the processor. Returns false if the account already has that id. */
export async function setPayoutAccount(
  tx: Db,
  accountId: string,
  payoutAccountId: string,
  nowMs: number,
): Promise<boolean> {
  const done = await tx
    .updateTable('accounts')
    .set({ payout_account_id: payoutAccountId, payout_onboarded_at: null, updated_at: nowMs })
    .where('id', '=', accountId)
    .where((eb) =>
      eb.or([eb('payout_account_id', 'is', null), eb('payout_account_id', '<>', payoutAccountId)]),
    )
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** `accountId` is null for an unknown id; `isNew` is true for the first call only. */
export async function markOnboarded(
  tx: Db,
  payoutAccountId: string,
  nowMs: number,
): Promise<{ accountId: string | null; isNew: boolean }> {
  const account = await tx
    .selectFrom('accounts')
    .select('id')
    .where('payout_account_id', '=', payoutAccountId)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  if (account === undefined) return { accountId: null, isNew: false };
  const done = await tx
    .updateTable('accounts')
    .set({ payout_onboarded_at: nowMs, updated_at: nowMs })
    .where('id', '=', account.id)
    .where('payout_onboarded_at', 'is', null)
    .executeTakeFirst();
  return { accountId: account.id, isNew: done.numUpdatedRows > 0n };
}
