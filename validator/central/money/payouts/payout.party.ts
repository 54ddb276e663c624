/** Who is paid out, and where to: providers at their own keys, accounts as they chose. */
import { referralDestination } from '../../accounts/account/referral-payout.ts';
import type { Db } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import { payoutKeyOf } from '../../providers/provider.service.ts';
import { lockWithPods } from '../cut-off/cut-off.ts';
import type { LedgerAccount } from '../ledger/ledger-account.ts';
import { providerAccount } from '../metering/settlement.ts';
import { referralAccount } from '../referrals/referral.service.ts';
import type { PayoutMethod } from './payout.state.ts';

/** Whose earnings; `id` is that of a provider or of an account. */
export type Party = { kind: 'provider' | 'referral'; id: string };

/** Where a payout goes. */
export type Destination = { method: PayoutMethod; address: string; network: string | null };

/** The party of an account of the ledger; null for any other account. */
export function partyOf(ledgerAccount: string): Party | null {
  const [kind, id] = ledgerAccount.split(':');
  if (id === undefined || (kind !== 'provider' && kind !== 'referral')) return null;
  return { kind, id };
}

/** Its account of the ledger. */
export function accountOfParty({ kind, id }: Party): LedgerAccount {
  return kind === 'provider' ? providerAccount(id) : referralAccount(id);
}

/** Nobody else requests a payout for it until the commit. An account comes with its pods, which its own credit may start. */
export function lockParty(tx: Db, { kind, id }: Party): Promise<void> {
  return kind === 'provider' ? lockRow(tx, 'providers', id) : lockWithPods(tx, [id]);
}

/** Null for who cannot be paid: a banned provider, an account that is gone or has no onboarding. */
export async function destinationOf(db: Db, { kind, id }: Party): Promise<Destination | null> {
  if (kind === 'referral') return referralDestination(db, id);
  const address = await payoutKeyOf(db, id);
  return address === null ? null : { method: 'hotkey', address, network: null };
}
