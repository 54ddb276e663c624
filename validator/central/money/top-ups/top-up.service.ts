/** What becomes of a charge: credited once, tried again, or taken back (marketplace reference 1.6, 2.3.10, I14). */
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
import type { ChargeAnswer, PaymentNews } from '../../platform/ports.ts';
import { setDue } from '../../platform/schedule/due.ts';
import { lockWithPods } from '../cut-off/cut-off.ts';
import { postGroup } from '../ledger/ledger.service.ts';
import { causedBy, type Leg } from '../ledger/ledger-account.ts';
import { fundsLowered, settledFirst, takePaid } from '../metering/settled-first.ts';
import { afterCharge, type ChargeOutcome } from './auto-top-up.state.ts';
import { findAutoTopUp, updateAutoTopUp } from './auto-top-up.store.ts';
import { addPaidCredit } from './paid-credit.ts';
import { IN_FLIGHT, REACHED_FROM, type TopUpState } from './top-up.state.ts';
import { changeTopUp, findTopUp, findTopUpByExternal } from './top-up.store.ts';

const MAIL_USEFUL_MS = 7 * 86_400_000;
const MAX_ERROR_CHARS = 200;

export type TopUpsDeps = { db: Database; clock: Clock; random: Random; mails: Mails };
export type TopUps = ReturnType<typeof createTopUps>;

/** What is noted of a charge, each in one transaction, whoever tells it and however often. */
export function createTopUps({ db, clock, random, mails }: TopUpsDeps) {
  async function recordFailure(tx: Db, accountId: string, detail: string): Promise<void> {
    await recordEvent(
      tx,
      { clock, random },
      {
        ...{ accountId, actor: SYSTEM_ACTOR },
        subEventType: 'billing.failed',
        payload: { pod_name: null, node: null, detail },
      },
    );
  }

  /** The owner is told however the settings are: from now on nothing tops up. */
  async function tellSuspended(tx: Db, accountId: string, reason: string): Promise<void> {
    await recordFailure(tx, accountId, `auto top-up suspended: ${reason}`);
    const to = await addressOf(tx, accountId);
    if (to === null) return;
    await mails.add(tx, {
      ...{ accountId, to, kind: 'top-up-suspended', content: topUpsSuspendedMail(reason) },
      dedupeKey: `top-up-suspended:${random.uuid()}`,
      usefulForMs: MAIL_USEFUL_MS,
    });
  }

  async function credit(tx: Db, row: TopUpRow): Promise<void> {
    const { id, account_id: accountId, amount_uusd: amountUusd } = row;
    await addPaidCredit(tx, { clock, random }, { accountId, amountUusd, id });
  }

  /** Only the charge that is in flight moves the auto top-up: one that succeeds late does not. */
  async function moveAuto(tx: Db, row: TopUpRow, outcome: ChargeOutcome, reason: string | null) {
    const auto = await findAutoTopUp(tx, row.account_id);
    if (auto === undefined || !isInFlight(row.state)) return;
    const next = afterCharge(outcome, auto.declines, clock.now());
    await updateAutoTopUp(tx, row.account_id, { ...next, last_error: reason });
    // Pods that stand still spend nothing that would have it looked at again.
    const isOn = auto.enabled === 1 && next.status !== 'suspended';
    if (isOn) await setDue(tx, 'top-up', row.account_id, next.not_before);
    if (next.status === 'suspended') {
      await tellSuspended(tx, row.account_id, `${next.declines} charges in a row were declined`);
    }
  }

  /** False when somebody else noted something at the same time: read it again. */
  async function settleIn(tx: Db, row: TopUpRow, to: TopUpState, told: Told): Promise<boolean> {
    if (!REACHED_FROM[to].includes(row.state)) return true;
    if (to === 'succeeded') await lockWithPods(tx, [row.account_id]);
    else await lockRow(tx, 'accounts', row.account_id);
    const reason = told.reason?.slice(0, MAX_ERROR_CHARS) ?? null;
    const externalId = told.externalId ?? row.external_id;
    const changes = { state: to, external_id: externalId, last_error: reason };
    if (!(await changeTopUp(tx, row, { ...changes, updated_at: clock.now() }))) return false;
    if (to === 'succeeded') await credit(tx, row);
    if (to === 'declined') {
      await recordFailure(tx, row.account_id, `top-up declined: ${reason}`);
    }
    if (to !== 'pending' && to !== 'charging') await moveAuto(tx, row, to, reason);
    return true;
  }

  /** Takes money back: from what the account has free, and beyond that from the platform; nobody falls below zero. */
  async function takeBack(tx: Db, row: TopUpRow, back: TakenBack): Promise<boolean> {
    const { account_id: accountId, amount_uusd: amount } = row;
    const left = amount - row.refunded_uusd - row.disputed_uusd;
    const amountUusd = Math.min(back.amountUusd, left);
    if (amountUusd <= 0) return true;
    await lockRow(tx, 'accounts', accountId);
    const column = back.by === 'refund' ? 'refunded_uusd' : 'disputed_uusd';
    const changes = { [column]: row[column] + amountUusd, updated_at: clock.now() };
    if (!(await changeTopUp(tx, row, changes))) return false;
    const settled = await settledFirst(tx, accountId, clock.now());
    const { paid, held, heldOfGranted } = settled.wallet;
    const own = Math.min(amountUusd, paid - (held - heldOfGranted));
    const legs: Leg[] = [
      takePaid(settled, own, 'external:topup'),
      { debit: 'platform:absorbed', credit: 'external:topup', amountUusd: amountUusd - own },
    ];
    const id = `${row.id}:${row[column] + amountUusd}`;
    const cause = { type: `top-up-${back.by}`, id, atMs: clock.now(), once: true };
    const group = legs.filter((leg) => leg.amountUusd > 0);
    await postGroup(tx, group, causedBy(SYSTEM_ACTOR, cause));
    await fundsLowered(tx, settled, clock.now());
    const dollars = formatUsdFloor(amountUusd);
    await recordFailure(tx, accountId, `${dollars} of a top-up went back to the payer: ${back.by}`);
    if (back.by === 'dispute') await suspend(tx, accountId);
    return true;
  }

  /** Whoever disputes a charge is not charged again. */
  async function suspend(tx: Db, accountId: string): Promise<void> {
    const auto = await findAutoTopUp(tx, accountId);
    if (auto === undefined || auto.status === 'suspended') return;
    const reason = 'a charge was disputed';
    await updateAutoTopUp(tx, accountId, { status: 'suspended', last_error: reason });
    await tellSuspended(tx, accountId, reason);
  }

  async function rowOf(tx: Db, { externalId, key }: PaymentNews): Promise<TopUpRow | undefined> {
    const known = await findTopUpByExternal(tx, externalId);
    return known ?? (key === null ? undefined : findTopUp(tx, key));
  }

  function hearIn(tx: Db, row: TopUpRow, { change, externalId }: PaymentNews): Promise<boolean> {
    if (change.kind === 'succeeded') {
      return settleIn(tx, row, 'succeeded', { externalId, reason: null });
    }
    if (change.kind === 'declined') {
      return settleIn(tx, row, 'declined', { externalId, reason: change.reason });
    }
    // Word of the charge itself is still to come: this comes again after it.
    if (row.state !== 'succeeded') return Promise.resolve(false);
    const back: TakenBack =
      change.kind === 'refunded'
        ? { by: 'refund', amountUusd: change.totalUusd - row.refunded_uusd }
        : { by: 'dispute', amountUusd: row.disputed_uusd > 0 ? 0 : change.amountUusd };
    return takeBack(tx, row, back);
  }

  return {
    /** Notes the processor's answer. */
    async settle(id: string, answer: ChargeAnswer): Promise<void> {
      const reason = answer.state === 'declined' ? answer.reason : null;
      const told = { externalId: answer.externalId, reason };
      await moneyTransaction({ db, clock, random }, async (tx) => {
        const row = await findTopUp(tx, id);
        if (row !== undefined) await settleIn(tx, row, answer.state, told);
      });
    },

    /** Nobody waits for an answer any more. */
    async giveUp(row: TopUpRow): Promise<void> {
      const told = { externalId: null, reason: 'the payment processor did not answer' };
      await moneyTransaction({ db, clock, random }, (tx) => settleIn(tx, row, 'unanswered', told));
    },

    /** Notes what the processor tells by itself; false when the charge is not ours. Rejects with `conflict` when it is to come again. */
    async hear(news: PaymentNews): Promise<boolean> {
      return moneyTransaction({ db, clock, random }, async (tx) => {
        const row = await rowOf(tx, news);
        if (row === undefined) return false;
        if (await hearIn(tx, row, news)) return true;
        throw new ApiError('conflict', 'The charge changed at the same time');
      });
    },
  };
}

/** What the processor said beside the state. */
type Told = { externalId: string | null; reason: string | null };
type TakenBack = { by: 'refund' | 'dispute'; amountUusd: number };

function isInFlight(state: TopUpState): boolean {
  return IN_FLIGHT.some((other) => other === state);
}
