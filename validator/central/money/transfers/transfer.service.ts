/** Credit passed from one account to another (contract 9.2; marketplace reference 2.3.10). */

import { formatUsdCeil, formatUsdFloor, microToUsd, usdToMicro } from '#shared/api/money.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { findAccountByAddress } from '../../accounts/account/account.service.ts';
import { accountOf } from '../../accounts/auth/account-access.ts';
import { recordEvent } from '../../delivery/events/event.service.ts';
import type { Account, Database, Db } from '../../platform/database/tables.ts';
import type { Actor, UserIdentity } from '../../platform/identity.ts';
import { beside } from '../balance/balance.service.ts';
import { fundsAdded, lockWithPods } from '../cut-off/cut-off.ts';
import { postGroup } from '../ledger/ledger.service.ts';
import { causedBy } from '../ledger/ledger-account.ts';
import { paidAccount, type Wallet, walletOf } from '../ledger/wallet.service.ts';
import { fundsLowered, type Settled, settledFirst, takePaid } from '../metering/settled-first.ts';
import { disputableCredit } from '../top-ups/paid-credit.ts';
import type {
  TransferCreditsDto,
  TransferHistoryDto,
  TransferResponse,
} from './transfer.schemas.ts';
import {
  clearNotes,
  insertTransfer,
  type ListedTransfer,
  listTransfers,
} from './transfer.store.ts';

const SHOWN = 1_000;
const HOUR_MS = 3_600_000;

export type TransfersDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  /** For so long what was topped up, and may be disputed, stays with the account; milliseconds. */
  topUpWaitMs: number;
  /** What follows when an account has less than before. */
  afterSpend(tx: Db, accountId: string): Promise<void>;
};
export type Transfers = ReturnType<typeof createTransfers>;

/** Rules of transfers. */
export function createTransfers({ db, clock, random, topUpWaitMs, afterSpend }: TransfersDeps) {
  async function parties(tx: Db, caller: UserIdentity, email: string) {
    const { id: recipientId } = await recipientOf(tx, email);
    if (recipientId === caller.accountId) {
      throw new ApiError('bad_request', 'Credit cannot be transferred to your own account');
    }
    await lockWithPods(tx, [caller.accountId, recipientId]);
    const sender = await accountOf(tx, caller);
    // Again under the lock: it may have been deleted meanwhile.
    const recipient = await recipientOf(tx, email);
    if (recipient.id !== recipientId) throw unknownRecipient();
    return { sender, recipient };
  }

  async function record(tx: Db, accountId: string, actor: Actor, detail: string): Promise<void> {
    await recordEvent(
      tx,
      { clock, random },
      {
        ...{ accountId, subEventType: 'billing.success', actor },
        payload: { pod_name: null, node: null, detail },
      },
    );
  }

  return {
    /** In `tx`. Throws `email_not_verified`, `bad_request` for oneself, `not_found`, `insufficient_balance`. */
    async sendIn(
      tx: Db,
      caller: UserIdentity,
      body: TransferCreditsDto,
      actor: Actor,
    ): Promise<TransferResponse> {
      await requireVerified(tx, caller);
      const { sender, recipient } = await parties(tx, caller, body.recipient_email);
      const amountUusd = usdToMicro(body.amount);
      const [id, atMs] = [random.uuid(), clock.now()];
      const settled = await settledFirst(tx, sender.id, atMs);
      const waitsUusd = await disputableCredit(tx, sender.id, atMs - topUpWaitMs);
      requireTransferable(settled, { waitsUusd, waitMs: topUpWaitMs }, amountUusd);
      const leg = takePaid(settled, amountUusd, paidAccount(recipient.id));
      await postGroup(tx, [leg], causedBy(actor, { type: 'transfer', id, atMs, once: true }));
      const row = {
        ...{ id, sender_id: sender.id, recipient_id: recipient.id, amount_uusd: amountUusd },
        note: body.note ?? null,
        sender_after_uusd: postedIn(await walletOf(tx, sender.id)),
        recipient_after_uusd: postedIn(await walletOf(tx, recipient.id)),
        created_at: atMs,
      };
      await insertTransfer(tx, row);
      const amount = `$${body.amount}`;
      await record(tx, sender.id, actor, `${amount} transferred to another account`);
      await record(tx, recipient.id, { ...actor, apiKeyId: null }, `${amount} received`);
      await fundsAdded(tx, { clock, random }, recipient.id);
      await fundsLowered(tx, settled, atMs);
      await afterSpend(tx, sender.id);
      return {
        ...toHistory(sender.id, {
          ...{ ...row, seq: 0, sender_email: sender.email, recipient_email: recipient.email },
        }),
        balance: microToUsd(row.sender_after_uusd),
      };
    },

    /** Newest first, the last thousand. */
    async history({ accountId }: UserIdentity): Promise<TransferHistoryDto[]> {
      const rows = await listTransfers(db, accountId, SHOWN);
      return rows.map((row) => toHistory(accountId, row));
    },
  };
}

/** Clears what an account that is being deleted wrote beside its transfers; the transfers stay. */
export const forgetTransferNotes = clearNotes;

async function requireVerified(tx: Db, caller: UserIdentity): Promise<void> {
  const { email_verified_at: verifiedAt } = await accountOf(tx, caller);
  if (verifiedAt !== null) return;
  throw new ApiError('email_not_verified', 'Confirm your e-mail address first');
}

async function recipientOf(tx: Db, email: string): Promise<Account> {
  const account = await findAccountByAddress(tx, email);
  // Whoever has not confirmed it may have signed up with the address of somebody else.
  if (account === undefined || account.email_verified_at === null) throw unknownRecipient();
  return account;
}

function unknownRecipient(): ApiError {
  return new ApiError('not_found', 'No account has this e-mail address', {
    hint: 'Ask the recipient for the address of their account.',
  });
}

/** Paid credit only, nothing of it that is held, that pods need or that still waits. */
function requireTransferable(
  { wallet, keptUusd }: Settled,
  { waitsUusd, waitMs }: { waitsUusd: number; waitMs: number },
  amountUusd: number,
): void {
  const { paid, held, heldOfGranted, available } = wallet;
  const own = paid - (held - heldOfGranted);
  const transferable = Math.max(0, Math.min(own - waitsUusd, available - keptUusd));
  if (amountUusd <= transferable) return;
  const hint = waitsUusd > 0 && own > transferable ? waitHint(waitMs / HOUR_MS) : undefined;
  throw new ApiError(
    'insufficient_balance',
    `Insufficient balance. This transfer requires at least ${formatUsdCeil(amountUusd)}. ` +
      `Your balance is ${formatUsdFloor(transferable)}${beside(keptUusd)}, without granted credit, which cannot be transferred.`,
    hint === undefined ? {} : { hint },
  );
}

function waitHint(hours: number): string {
  return (
    `What the auto top-up charged can be spent at once, and be transferred ${hours} hours after the top-up. ` +
    'A payment that the operator notes (ledger pay-in) can be transferred at once.'
  );
}

function postedIn({ paid, granted }: Wallet): number {
  return paid + granted;
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
