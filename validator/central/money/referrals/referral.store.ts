/** Queries of the referrals table, with one row for each referred account. */
import {
  idsJson,
  isAmong,
  jsonRows,
  prepared,
  type Slots,
} from '../../platform/database/prepared.ts';
import type { Db, ReferralRow } from '../../platform/database/tables.ts';

/** Returns the account with this referral code; null if there is none. */
export async function findReferrer(db: Db, code: string): Promise<string | null> {
  const row = await db
    .selectFrom('accounts')
    .select('id')
    .where('referral_code', '=', code)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  return row?.id ?? null;
}

export async function insertReferral(db: Db, row: ReferralRow): Promise<void> {
  await db.insertInto('referrals').values(row).execute();
}

type Rows = Slots<{ rows: string }>;

const among = prepared((db, { rows }: Rows) =>
  db
    .selectFrom('referrals')
    .selectAll()
    .where(isAmong(db, 'account_id', rows))
    .orderBy('account_id'),
);

/** The referrals of those of these accounts that were referred. Runs in every settlement. */
export async function listReferrals(db: Db, accountIds: readonly string[]): Promise<ReferralRow[]> {
  return (await among(db, { rows: idsJson(accountIds) })).rows;
}

const FIGURES = {
  account_id: 'text',
  paid_uusd: 'bigint',
  accrued_uusd: 'bigint',
  seq: 'bigint',
} as const;

const write = prepared((db, { rows }: Rows) =>
  db
    .updateTable('referrals')
    .from(jsonRows(db, rows, FIGURES).as('input'))
    .set((eb) => ({
      paid_uusd: eb.ref('input.paid_uusd'),
      accrued_uusd: eb.ref('input.accrued_uusd'),
      seq: eb.ref('input.seq'),
    }))
    .whereRef('referrals.account_id', '=', 'input.account_id'),
);

/** Updates the paid and the credited totals. */
export async function writeReferrals(db: Db, rows: readonly ReferralRow[]): Promise<void> {
  if (rows.length === 0) return;
  await write(db, { rows: JSON.stringify(rows) });
}

/** Deletes the referrals by an account, so that the account receives no further credit. */
export async function deleteReferralsBy(db: Db, referrerId: string): Promise<void> {
  await db.deleteFrom('referrals').where('referrer_id', '=', referrerId).execute();
}
