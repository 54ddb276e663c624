/** Onboarding of accounts at the payment processor, after which referrals can be paid by `stripe_connect`. */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Account, Database } from '../../platform/database/tables.ts';
import { type Actor, SYSTEM_ACTOR, type UserIdentity } from '../../platform/identity.ts';
import type { Onboarding } from '../../platform/ports.ts';
import { recordAccountEvent } from '../account/account-event.ts';
import { accountOf } from '../auth/account-access.ts';
import type { PayoutAccount } from './payout-account.schemas.ts';
import { markOnboarded, setPayoutAccount } from './payout-account.store.ts';

export type PayoutAccountsDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  /** Null if the payment processor cannot pay accounts. */
  onboarding: Onboarding | null;
};

export type PayoutAccounts = ReturnType<typeof createPayoutAccounts>;

export function createPayoutAccounts({ db, clock, random, onboarding }: PayoutAccountsDeps) {
  /** Stores, once, that the onboarding is complete. Returns false if no account has this payout account. */
  function complete(payoutAccountId: string): Promise<boolean> {
    return db.transaction().execute(async (tx) => {
      const { accountId, isNew } = await markOnboarded(tx, payoutAccountId, clock.now());
      if (accountId === null) return false;
      const detail = 'payout account completed';
      if (isNew) await recordAccountEvent(tx, { clock, random }, accountId, SYSTEM_ACTOR, detail);
      return true;
    });
  }

  /** Returns true if the account can be paid. Calls the processor if the completion is not stored yet. */
  async function isOnboarded(account: Account): Promise<boolean> {
    if (account.payout_onboarded_at !== null) return true;
    const { payout_account_id: id } = account;
    if (id === null || onboarding === null || !(await onboarding.isComplete(id))) return false;
    return complete(id);
  }

  return {
    complete,

    /** Throws `bad_request` if the caller cannot be paid by `stripe_connect`. */
    async requireOnboarded(caller: UserIdentity): Promise<void> {
      if (await isOnboarded(await accountOf(db, caller))) return;
      throw new ApiError('bad_request', 'Payouts by stripe_connect need completed onboarding', {
        hint:
          onboarding === null
            ? 'The payment processor of this marketplace cannot pay accounts: choose balance or crypto.'
            : 'Begin the onboarding with POST /users/me/stripe-connect, or choose balance or crypto.',
      });
    },

    async get(caller: UserIdentity): Promise<PayoutAccount> {
      const account = await accountOf(db, caller);
      const isComplete = await isOnboarded(account);
      return rowOf(account.payout_account_id, isComplete, null);
    },

    /**
     * Creates the payout account, or continues its onboarding. `origin` is the origin of the API. Throws `bad_request`
     * if the processor cannot pay accounts, and `upstream_unavailable` if it does not answer.
     */
    async begin(caller: UserIdentity, actor: Actor, origin: string): Promise<PayoutAccount> {
      if (onboarding === null) {
        throw new ApiError('bad_request', 'The payment processor cannot pay accounts', {
          hint: 'Choose balance or crypto as referral_payout_method.',
        });
      }
      const account = await accountOf(db, caller);
      if (await isOnboarded(account)) return rowOf(account.payout_account_id, true, null);
      const { id: accountId, email, payout_account_id: known } = account;
      const begun = await onboarding.begin({ accountId, email, payoutAccountId: known, origin });
      const stored = await db.transaction().execute(async (tx) => {
        const { id } = await accountOf(tx, caller);
        const isNew = await setPayoutAccount(tx, id, begun.payoutAccountId, clock.now());
        const detail = 'payout account created';
        if (isNew) await recordAccountEvent(tx, { clock, random }, id, actor, detail);
        return begun.payoutAccountId;
      });
      return rowOf(stored, false, begun.url);
    },
  };
}

function rowOf(id: string | null, isComplete: boolean, url: string | null): PayoutAccount {
  return {
    stripe_connect_account_id: id,
    stripe_onboarding_completed: isComplete,
    onboarding_url: url,
  };
}
