/** The chart of accounts and what is posted between them (README, "Money"). Pure. */
import type { Actor } from '../../platform/identity.ts';

/** `user:` paid and `granted:` given credit of an account; `provider:` what a provider has earned and not been paid, `referral:` what an account has earned with those it brought. */
export type LedgerAccount =
  | `user:${string}`
  | `granted:${string}`
  | `provider:${string}`
  | `referral:${string}`
  | 'platform:fee'
  | 'platform:credits_granted'
  | 'platform:absorbed'
  | 'external:topup'
  | 'external:payout'
  | 'clearing:usage'
  | 'clearing:refund'
  | 'rounding';

/** Whole micro-dollars, above 0, from the account debited to the one credited. */
export type Leg = { debit: LedgerAccount; credit: LedgerAccount; amountUusd: number };

/** Why something is posted; with `once`, no other group ever has this type and id. */
export type Cause = {
  type: string;
  id: string;
  /** As `causedBy` writes it. */
  actor: string;
  requestId: string | null;
  atMs: number;
  once?: boolean;
};

/** The cause of what `actor` did. */
export function causedBy(actor: Actor, cause: Omit<Cause, 'actor' | 'requestId'>): Cause {
  const { auth, apiKeyId, requestId } = actor;
  return { ...cause, actor: apiKeyId === null ? auth : `${auth}:${apiKeyId}`, requestId };
}
