/** Sets the balances of accounts by ordinary transfers, and reads their holds. */
import { systemRandom } from '#shared/runtime/random.ts';
import type { Cause, LedgerAccount } from '../../../validator/central/money/ledger/double-entry.ts';
import { postGroup } from '../../../validator/central/money/ledger/ledger.service.ts';
import {
  grantedAccount,
  paidAccount,
  walletOf,
} from '../../../validator/central/money/ledger/wallet.service.ts';
import type { Database, Db } from '../../../validator/central/platform/database/tables.ts';

export { openHolds } from '../../../validator/simulate/invariants/open-holds.ts';

/** Creates a cause of a transfer, unique unless `change` sets its fields. */
export function testCause(change: Partial<Cause> = {}): Cause {
  const id = systemRandom.uuid();
  return { type: 'test', id, actor: 'system', requestId: null, atMs: 0, ...change };
}

/**
 * Posts or withdraws granted credit until every account, or only the named one, can spend `amountUusd` besides its
 * holds.
 */
export async function setAvailable(
  db: Database,
  amountUusd: number,
  accountId?: string,
): Promise<void> {
  const accounts = await db.selectFrom('accounts').select('id').execute();
  await db.transaction().execute(async (tx) => {
    for (const { id } of accounts) {
      if (accountId === undefined || id === accountId) await setOne(tx, id, amountUusd);
    }
  });
}

/** Posts paid credit. */
export async function payIn(db: Database, accountId: string, amountUusd: number): Promise<void> {
  const leg = { debit: 'external:topup', credit: paidAccount(accountId), amountUusd } as const;
  await db.transaction().execute((tx) => postGroup(tx, [leg], testCause()));
}

async function setOne(tx: Db, accountId: string, amountUusd: number): Promise<void> {
  const more = amountUusd - (await walletOf(tx, accountId)).available;
  const own = grantedAccount(accountId);
  const source: LedgerAccount = 'platform:credits_granted';
  const leg = more > 0 ? { debit: source, credit: own } : { debit: own, credit: source };
  if (more !== 0) await postGroup(tx, [{ ...leg, amountUusd: Math.abs(more) }], testCause());
}
