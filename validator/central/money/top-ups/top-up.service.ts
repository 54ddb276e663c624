/**
 * Applies results of charges: credits a top-up once, records failures, and debits refunds and disputes. Each result is
 * applied in one transaction. Repeated calls have no effect.
 */
import { formatUsdFloor } from '#shared/api/money.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { addressOf } from '../../accounts/auth/account-access.ts';
import { recordEvent } from '../../delivery/events/event.service.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import { topUpsSuspendedMail } from '../../delivery/mail/mail-text.ts';
import type { Database, Db, TopUpRow } from '../../platform/database/tables.ts';
import { lockRow, moneyTransaction } from '../../platform/database/transactions.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import type { ChargeAnswer, PaymentEvent } from '../../platform/ports.ts';
import { setDue } from '../../platform/schedule/due.ts';
import type { AccountPods } from '../account-pods.ts';
import { causedBy, type Leg } from '../ledger/double-entry.ts';
import { postGroup } from '../ledger/ledger.service.ts';
import { debitPaid, fundsReduced, settleFirst } from '../metering/settlement.service.ts';
import { addPaidCredit } from './paid-credit.ts';
import {
  afterCharge,
  type ChargeOutcome,
  IN_FLIGHT,
  REACHED_FROM,
  type TopUpState,
} from './top-up.state.ts';
import {
  changeTopUp,
  findAutoTopUp,
  findTopUp,
  findTopUpByExternal,
  updateAutoTopUp,
} from './top-up.store.ts';

const MAIL_USEFUL_MS = 7 * 86_400_000;
const MAX_ERROR_CHARS = 200;

export type TopUpsDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  mails: Mails;
  pods: AccountPods;
};
export type TopUps = ReturnType<typeof createTopUps>;

export function createTopUps({ db, clock, random, mails, pods }: TopUpsDeps) {
  async function recordFailure(tx: Db, accountId: string, detail: string): Promise<void> {
    await recordEvent(
      tx,
      { clock, random },
      {
        accountId,
        actor: SYSTEM_ACTOR,
        subEventType: 'billing.failed',
        payload: { pod_name: null, node: null, detail },
      },
    );
  }

  /** Mails the owner regardless of notification settings, because top-ups stop until the owner acts. */
  async function notifySuspended(tx: Db, accountId: string, reason: string): Promise<void> {
    await recordFailure(tx, accountId, `auto top-up suspended: ${reason}`);
    const to = await addressOf(tx, accountId);
    if (to === null) return;
    await mails.add(tx, {
      accountId,
      to,
      kind: 'top-up-suspended',
      content: topUpsSuspendedMail(reason),
      dedupeKey: `top-up-suspended:${random.uuid()}`,
      usefulForMs: MAIL_USEFUL_MS,
    });
  }

  /**
   * Updates the auto top-up after a charge that was in flight. A charge that succeeds late does not change the auto
   * top-up.
   */
  async function updateAuto(tx: Db, row: TopUpRow, outcome: ChargeOutcome, reason: string | null) {
    const auto = await findAutoTopUp(tx, row.account_id);
    if (auto === undefined || !isInFlight(row.state)) return;
    const next = afterCharge(outcome, auto.declines, clock.now());
    await updateAutoTopUp(tx, row.account_id, { ...next, last_error: reason });
    // Stopped pods spend nothing, so no spend would trigger the next check of the auto top-up.
    const isOn = auto.enabled === 1 && next.status !== 'suspended';
    if (isOn) await setDue(tx, 'top-up', row.account_id, next.not_before);
    if (next.status === 'suspended') {
      await notifySuspended(tx, row.account_id, `${next.declines} charges in a row were declined`);
    }
  }

  /** Returns false if the charge was changed concurrently. The caller then reads the charge again. */
  async function settleIn(tx: Db, row: TopUpRow, to: TopUpState, result: Result): Promise<boolean> {
    if (!REACHED_FROM[to].includes(row.state)) return true;
    if (to === 'succeeded') await pods.lock(tx, [row.account_id]);
    else await lockRow(tx, 'accounts', row.account_id);
    const reason = result.reason?.slice(0, MAX_ERROR_CHARS) ?? null;
    const externalId = result.externalId ?? row.external_id;
    const changes = { state: to, external_id: externalId, last_error: reason };
    if (!(await changeTopUp(tx, row, { ...changes, updated_at: clock.now() }))) return false;
    if (to === 'succeeded') {
      const credit = { accountId: row.account_id, amountUusd: row.amount_uusd, id: row.id };
      await addPaidCredit(tx, { clock, random, pods }, credit);
    }
    if (to === 'declined') {
      await recordFailure(tx, row.account_id, `top-up declined: ${reason}`);
    }
    if (to !== 'pending' && to !== 'charging') await updateAuto(tx, row, to, reason);
    return true;
  }

  /**
   * Returns money to the payer: from the account's paid credit that is not held, and the remaining amount from the
   * platform, so that no account falls below 0. Returns false if the charge was changed concurrently.
   */
  async function reverse(tx: Db, row: TopUpRow, back: Reversal): Promise<boolean> {
    const { account_id: accountId, amount_uusd: amount } = row;
    const left = amount - row.refunded_uusd - row.disputed_uusd;
    const amountUusd = Math.min(back.amountUusd, left);
    if (amountUusd <= 0) return true;
    await lockRow(tx, 'accounts', accountId);
    const column = back.by === 'refund' ? 'refunded_uusd' : 'disputed_uusd';
    const changes = { [column]: row[column] + amountUusd, updated_at: clock.now() };
    if (!(await changeTopUp(tx, row, changes))) return false;
    const settled = await settleFirst(tx, accountId, clock.now());
    const { paid, held, heldOfGranted } = settled.wallet;
    const free = Math.min(amountUusd, paid - (held - heldOfGranted));
    const legs: Leg[] = [
      debitPaid(settled, free, 'external:topup'),
      { debit: 'platform:absorbed', credit: 'external:topup', amountUusd: amountUusd - free },
    ];
    const id = `${row.id}:${row[column] + amountUusd}`;
    const cause = { type: `top-up-${back.by}`, id, atMs: clock.now(), once: true };
    const group = legs.filter((leg) => leg.amountUusd > 0);
    await postGroup(tx, group, causedBy(SYSTEM_ACTOR, cause));
    await fundsReduced(tx, settled, clock.now());
    const dollars = formatUsdFloor(amountUusd);
    await recordFailure(
      tx,
      accountId,
      `${dollars} of a top-up was returned to the payer: ${back.by}`,
    );
    if (back.by === 'dispute') await suspend(tx, accountId);
    return true;
  }

  /** Suspends the auto top-up after a dispute, so that the account is not charged again. */
  async function suspend(tx: Db, accountId: string): Promise<void> {
    const auto = await findAutoTopUp(tx, accountId);
    if (auto === undefined || auto.status === 'suspended') return;
    const reason = 'a charge was disputed';
    await updateAutoTopUp(tx, accountId, { status: 'suspended', last_error: reason });
    await notifySuspended(tx, accountId, reason);
  }

  async function rowOf(tx: Db, { externalId, key }: PaymentEvent): Promise<TopUpRow | undefined> {
    const known = await findTopUpByExternal(tx, externalId);
    return known ?? (key === null ? undefined : findTopUp(tx, key));
  }

  function applyIn(tx: Db, row: TopUpRow, { change, externalId }: PaymentEvent): Promise<boolean> {
    if (change.kind === 'succeeded') {
      return settleIn(tx, row, 'succeeded', { externalId, reason: null });
    }
    if (change.kind === 'declined') {
      return settleIn(tx, row, 'declined', { externalId, reason: change.reason });
    }
    // The result of the charge itself has not arrived yet. The processor will repeat this event.
    if (row.state !== 'succeeded') return Promise.resolve(false);
    const back: Reversal =
      change.kind === 'refunded'
        ? { by: 'refund', amountUusd: change.totalUusd - row.refunded_uusd }
        : { by: 'dispute', amountUusd: row.disputed_uusd > 0 ? 0 : change.amountUusd };
    return reverse(tx, row, back);
  }

  return {
    /** Applies the processor's answer to a charge. */
    async settle(id: string, answer: ChargeAnswer): Promise<void> {
      const reason = answer.state === 'declined' ? answer.reason : null;
      const result = { externalId: answer.externalId, reason };
      await moneyTransaction({ db, clock, random }, async (tx) => {
        const row = await findTopUp(tx, id);
        if (row !== undefined) await settleIn(tx, row, answer.state, result);
      });
    },

    /** Marks a charge as unanswered. */
    async expire(row: TopUpRow): Promise<void> {
      const result = { externalId: null, reason: 'the payment processor did not answer' };
      await moneyTransaction({ db, clock, random }, (tx) =>
        settleIn(tx, row, 'unanswered', result),
      );
    },

    /**
     * Applies an event that the processor sent on its own initiative. Returns false if the charge is unknown. Rejects
     * with `conflict` if the processor must repeat the event.
     */
    async applyEvent(event: PaymentEvent): Promise<boolean> {
      return moneyTransaction({ db, clock, random }, async (tx) => {
        const row = await rowOf(tx, event);
        if (row === undefined) return false;
        if (await applyIn(tx, row, event)) return true;
        throw new ApiError('conflict', 'The charge changed at the same time');
      });
    },
  };
}

/** The processor's answer except the state. */
type Result = { externalId: string | null; reason: string | null };
type Reversal = { by: 'refund' | 'dispute'; amountUusd: number };

function isInFlight(state: TopUpState): boolean {
  return IN_FLIGHT.some((other) => other === state);
}
