/**
 * DELETE /users/me: revokes credentials and deletes personal data. Events and entries of the ledger are kept under the
 * account's id.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Account, Database, Db } from '../../platform/database/tables.ts';
import { lockRow, moneyTransaction } from '../../platform/database/transactions.ts';
import type { Actor } from '../../platform/identity.ts';
import type { ApiKeys } from '../api-keys/api-key.service.ts';
import type { Sessions } from '../auth/session.ts';
import { updateAccount } from './account.store.ts';
import { recordAccountEvent } from './account-event.ts';
import type { AccountPorts } from './account-ports.ts';
import type { AccountTokens } from './account-token.service.ts';

export type AccountRemovalDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  sessions: Sessions;
  apiKeys: ApiKeys;
  tokens: AccountTokens;
  livePodsOf: AccountPorts['livePodsOf'];
  /** Functions that delete the account's data in each module, in the transaction that removes the account. */
  deleteData: readonly ((tx: Db, accountId: string) => Promise<void>)[];
};

/** Maximum number of pods named in the error message. */
const NAMED_PODS = 20;
/** Stored instead of a hash; matches no password. */
const NO_PASSWORD = '';

export type AccountRemoval = ReturnType<typeof createAccountRemoval>;

/**
 * Returns the function that removes an account. While the account has pods, the function throws `bad_request` and names
 * them.
 */
export function createAccountRemoval(deps: AccountRemovalDeps) {
  const { db, clock, random, sessions, apiKeys, tokens, livePodsOf, deleteData } = deps;

  return async (accountId: string, actor: Actor): Promise<{ success: true; id: string }> => {
    await moneyTransaction({ db, clock, random }, async (tx) => {
      await lockRow(tx, 'accounts', accountId);
      refuseWithPods(await livePodsOf(tx, accountId));
      const nowMs = clock.now();
      await updateAccount(tx, accountId, cleared(accountId, nowMs));
      await apiKeys.removeAll(tx, accountId);
      await sessions.revokeAll(tx, 'user', accountId, null);
      await tokens.endAll(tx, accountId);
      for (const deleteIn of deleteData) await deleteIn(tx, accountId);
      await recordAccountEvent(tx, { clock, random }, accountId, actor, 'account deleted');
    });
    return { success: true, id: accountId };
  };
}

function refuseWithPods(pods: Awaited<ReturnType<AccountPorts['livePodsOf']>>): void {
  if (pods.length === 0) return;
  const named = pods.slice(0, NAMED_PODS).map(({ id, pod_name }) => `${pod_name} (${id})`);
  const more = pods.length > NAMED_PODS ? `, and ${pods.length - NAMED_PODS} more` : '';
  throw new ApiError('bad_request', `The account still has pods: ${named.join(', ')}${more}`, {
    hint: 'Delete these pods first.',
    details: { pods: pods.map(({ id, pod_name }) => ({ id, pod_name })) },
  });
}

/** Returns the changes that clear personal data. Afterwards a new account may use the address. */
function cleared(accountId: string, nowMs: number): Partial<Account> {
  return {
    email: '',
    email_norm: `deleted:${accountId}`,
    email_verified_at: null,
    pending_email: null,
    password_hash: NO_PASSWORD,
    name: '',
    company_name: null,
    avatar_url: null,
    default_template_id: null,
    termination_hours_json: '{}',
    chat_user_id: null,
    chat_username: null,
    referral_payout_method: 'balance',
    referral_crypto_address: null,
    referral_crypto_network: null,
    payment_customer_id: null,
    payout_account_id: null,
    payout_onboarded_at: null,
    deleted_at: nowMs,
    updated_at: nowMs,
  };
}
