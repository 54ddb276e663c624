/** Transfers of paid credit from one account to another. */
import { formatUsdCeil, formatUsdFloor, microToUsd, usdToMicro } from '#shared/api/money.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { findAccountByAddress } from '../../accounts/account/account.service.ts';
import { accountOf } from '../../accounts/auth/account-access.ts';
import { recordEvent } from '../../delivery/events/event.service.ts';
import type { Account, Database, Db } from '../../platform/database/tables.ts';
import type { Actor, UserIdentity } from '../../platform/identity.ts';
import type { AccountPods } from '../account-pods.ts';
import { balanceOf, reservedText } from '../balance/balance.service.ts';
import { causedBy } from '../ledger/double-entry.ts';
import { postGroup } from '../ledger/ledger.service.ts';
import { paidAccount } from '../ledger/wallet.service.ts';
import { requireKeyBudget } from '../metering/key-budget.service.ts';
import {
  debitPaid,
  fundsReduced,
  type SettledAccount,
  settleFirst,
} from '../metering/settlement.service.ts';
import { disputableCredit } from '../top-ups/paid-credit.ts';
import type {
  TransferCreditsDto,
  TransferHistoryDto,
  TransferHistoryQuery,
  TransferResponse,
} from './transfer.schemas.ts';
import {
  clearNotes,
  insertTransfer,
  type ListedTransfer,
  listTransfers,
} from './transfer.store.ts';

const HOUR_MS = 3_600_000;

export type TransfersDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  pods: AccountPods;
  /** Milliseconds for which topped-up credit cannot be transferred, because the payer may dispute it. */
  topUpWaitMs: number;
  /** Checks low balance and auto top-up after a spend. */
  afterSpend(tx: Db, accountId: string): Promise<void>;
};
export type Transfers = ReturnType<typeof createTransfers>;

export function createTransfers(deps: TransfersDeps) {
  const { db, clock, random, pods, topUpWaitMs, afterSpend } = deps;

  /** Locks both accounts with their pods. */
  async function lockParties(tx: Db, caller: UserIdentity, email: string) {
    const { id: recipientId } = await recipientOf(tx, email);
    if (recipientId === caller.accountId) {
      throw new ApiError('bad_request', 'Credit cannot be transferred to your own account');
    }
    await pods.lock(tx, [caller.accountId, recipientId]);
    const sender = await accountOf(tx, caller);
    // Reads the account again under the lock, because it may have been deleted meanwhile.
    const recipient = await recipientOf(tx, email);
    if (recipient.id !== recipientId) throw unknownRecipient();
    return { sender, recipient };
  }

  async function record(tx: Db, accountId: string, actor: Actor, detail: string): Promise<void> {
    await recordEvent(
      tx,
      { clock, random },
      {
        accountId,
        subEventType: 'billing.success',
        actor,
        payload: { pod_name: null, node: null, detail },
      },
    );
  }

  return {
    /**
     * Transfers credit in the caller's transaction. Throws `email_not_verified`, `bad_request` for a transfer to the
     * same account, `not_found`, `insufficient_balance` and `API_KEY_BUDGET_EXCEEDED`.
     */
    async sendIn(
      tx: Db,
      caller: UserIdentity,
      body: TransferCreditsDto,
      actor: Actor,
    ): Promise<TransferResponse> {
      await requireVerified(tx, caller);
      const { sender, recipient } = await lockParties(tx, caller, body.recipient_email);
      const amountUusd = usdToMicro(body.amount);
      const [id, atMs] = [random.uuid(), clock.now()];
      const settled = await settleFirst(tx, sender.id, atMs);
      const waitsUusd = await disputableCredit(tx, sender.id, atMs - topUpWaitMs);
      requireTransferable(settled, { waitsUusd, waitMs: topUpWaitMs }, amountUusd);
      await requireKeyBudget(tx, actor.apiKeyId, amountUusd, atMs);
      const leg = debitPaid(settled, amountUusd, paidAccount(recipient.id));
      await postGroup(tx, [leg], causedBy(actor, { type: 'transfer', id, atMs, once: true }));
      const row = {
        id,
        sender_id: sender.id,
        recipient_id: recipient.id,
        amount_uusd: amountUusd,
        note: body.note ?? null,
        sender_after_uusd: (await balanceOf(tx, sender.id, atMs)).posted,
        recipient_after_uusd: (await balanceOf(tx, recipient.id, atMs)).posted,
        created_at: atMs,
      };
      await insertTransfer(tx, row);
      const amount = `$${body.amount}`;
      await record(tx, sender.id, actor, `${amount} transferred to another account`);
      await record(tx, recipient.id, { ...actor, apiKeyId: null }, `${amount} received`);
      await pods.restart(tx, recipient.id);
      await fundsReduced(tx, settled, atMs);
      await afterSpend(tx, sender.id);
      return {
        ...toHistory(sender.id, {
          ...row,
          seq: 0,
          sender_email: sender.email,
          recipient_email: recipient.email,
        }),
        balance: microToUsd(row.sender_after_uusd),
      };
    },

    /** Newest first. */
    async history(
      { accountId }: UserIdentity,
      query: TransferHistoryQuery,
    ): Promise<TransferHistoryDto[]> {
      const rows = await listTransfers(db, accountId, query);
      return rows.map((row) => toHistory(accountId, row));
    },
  };
}

/** Clears the notes written by an account that is being removed. The transfers are kept. */
export const deleteTransferNotes = clearNotes;

async function requireVerified(tx: Db, caller: UserIdentity): Promise<void> {
  const { email_verified_at: verifiedAt } = await accountOf(tx, caller);
  if (verifiedAt !== null) return;
  throw new ApiError('email_not_verified', 'Confirm your e-mail address first');
}

async function recipientOf(tx: Db, email: string): Promise<Account> {
  const account = await findAccountByAddress(tx, email);
  // An unconfirmed address may belong to another person.
  if (account === undefined || account.email_verified_at === null) throw unknownRecipient();
  return account;
}

function unknownRecipient(): ApiError {
  return new ApiError('not_found', 'No account has this e-mail address', {
    hint: 'Ask the recipient for the address of their account.',
  });
}

/**
 * Throws `insufficient_balance` above the transferable amount: paid credit minus holds, the needs of pods, and recent
 * top-ups.
 */
function requireTransferable(
  { wallet, reservedUusd }: SettledAccount,
  { waitsUusd, waitMs }: { waitsUusd: number; waitMs: number },
  amountUusd: number,
): void {
  const { paid, held, heldOfGranted, available } = wallet;
  const free = paid - (held - heldOfGranted);
  const transferable = Math.max(0, Math.min(free - waitsUusd, available - reservedUusd));
  if (amountUusd <= transferable) return;
  const hint = waitsUusd > 0 && free > transferable ? waitHint(waitMs / HOUR_MS) : undefined;
  throw new ApiError(
    'insufficient_balance',
    `Insufficient balance. This transfer requires at least ${formatUsdCeil(amountUusd)}. ` +
      `Your balance is ${formatUsdFloor(transferable)}${reservedText(reservedUusd)}, without granted credit, which cannot be transferred.`,
    hint === undefined ? {} : { hint },
  );
}

function waitHint(hours: number): string {
  return (
    `Credit from auto top-ups can be spent at once and transferred ${hours} hours after the top-up. ` +
    'A payment that the operator records (ledger pay-in) can be transferred at once.'
  );
}

function toHistory(accountId: string, row: ListedTransfer): TransferHistoryDto {
  const isSender = row.sender_id === accountId;
  return {
    id: row.id,
    direction: isSender ? 'sent' : 'received',
    amount: microToUsd(row.amount_uusd),
    counterparty_email: isSender ? row.recipient_email : row.sender_email,
    note: row.note,
    status: 'completed',
    balance_after: microToUsd(isSender ? row.sender_after_uusd : row.recipient_after_uusd),
    created_at: naiveUtc(row.created_at),
  };
}
