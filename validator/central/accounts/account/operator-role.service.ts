/** The operator's role: an account with this role may call the routes below /api/operator. */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { recordAudit, requireReason } from '../../platform/audit/audit.service.ts';
import type { Db } from '../../platform/database/tables.ts';
import { lockAccount } from '../auth/account-access.ts';
import { findAccountByAddress } from './account.service.ts';
import { updateAccount } from './account.store.ts';

export { listOperators } from './account.store.ts';

export type RoleChange = {
  email: string;
  isOperator: boolean;
  /** Required; stored in the audit entry. */
  reason: string;
  /** Login name of the person who runs the command on the host. */
  operator: string;
};

/**
 * Grants or revokes the role and writes an audit entry, in the caller's transaction. Returns true if the state changed.
 * Throws `bad_request` without a reason and `not_found` if no account has the address.
 */
export async function changeOperatorRole(
  tx: Db,
  { clock }: { clock: Clock },
  { email, isOperator, reason, operator }: RoleChange,
): Promise<boolean> {
  const text = requireReason(reason);
  const found = await findAccountByAddress(tx, email);
  if (found === undefined) {
    throw new ApiError('not_found', `No account has the address ${email}`, {
      hint: 'Name the e-mail address with which the account logs in.',
    });
  }
  const account = await lockAccount(tx, { accountId: found.id });
  const nowMs = clock.now();
  const hasChanged = (account.operator_since !== null) !== isOperator;
  if (hasChanged) {
    const changes = { operator_since: isOperator ? nowMs : null, updated_at: nowMs };
    await updateAccount(tx, account.id, changes);
  }
  await recordAudit(tx, {
    operator,
    action: isOperator ? 'operator.grant' : 'operator.revoke',
    subject_type: 'account',
    subject_id: account.id,
    reason: text,
    at_ms: nowMs,
  });
  return hasChanged;
}
