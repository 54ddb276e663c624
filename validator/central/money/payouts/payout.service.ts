/** Payouts: requested once per party, decided once, whoever asks and however often (marketplace reference 2.2, 2.4 I16). */

import { formatUsdFloor } from '#shared/api/money.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { recordEvent } from '../../delivery/events/event.service.ts';
import type { Database, Db, PayoutRow } from '../../platform/database/tables.ts';
import { moneyTransaction } from '../../platform/database/transactions.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import type { PayoutAnswer } from '../../platform/ports.ts';
import { fundsAdded } from '../cut-off/cut-off.ts';
import { placePayout, settleHold, voidHold } from '../ledger/hold.service.ts';
import { postGroup } from '../ledger/ledger.service.ts';
import { causedBy, type Leg } from '../ledger/ledger-account.ts';
import { lockedStandingOf, paidAccount } from '../ledger/wallet.service.ts';
import { rearmLowBalance } from '../low-balance/low-balance.service.ts';
import {
  accountOfParty,
  type Destination,
  destinationOf,
  lockParty,
  type Party,
  partyOf,
} from './payout.party.ts';
import {
  MINIMUM_UUSD,
  type PayoutState,
  payable,
  REACHED_FROM,
  settledUntil,
} from './payout.state.ts';
import {
  changePayout,
  earnedSince,
  findOpen,
  findPayout,
  fromFeesSince,
  insertPayout,
  paidUntil,
} from './payout.store.ts';

const MAX_ERROR_CHARS = 200;

/** Up to when everything that a party earned is paid out; 0 where nothing is. */
export const paidOutUntil = paidUntil;

export type PayoutsDeps = { db: Database; clock: Clock; random: Random };

/** Why nothing is paid out. */
export type NotPaid = 'open' | 'no_destination' | 'too_little';
export type Requested = { payout: PayoutRow } | { refused: NotPaid; payableUusd: number };

export type PayoutRequests = ReturnType<typeof createPayouts>;

/** Rules of payouts. */
export function createPayouts({ db, clock, random }: PayoutsDeps) {
  async function requestIn(tx: Db, party: Party): Promise<Requested> {
    await lockParty(tx, party);
    const account = accountOfParty(party);
    const untilMs = settledUntil(clock.now());
    const { posted: balance, pending } = await lockedStandingOf(tx, account);
    const withheld = await (party.kind === 'provider'
      ? earnedSince(tx, party.id, untilMs)
      : fromFeesSince(tx, account, untilMs));
    const amountUusd = payable({ balance, pending, withheld });
    const refuse = (refused: NotPaid) => ({ refused, payableUusd: amountUusd });
    if ((await findOpen(tx, account)) !== undefined) return refuse('open');
    const destination = await destinationOf(tx, party);
    if (destination === null) return refuse('no_destination');
    if (amountUusd < MINIMUM_UUSD[destination.method]) return refuse('too_little');
    return { payout: await begin(tx, party, { amountUusd, destination, untilMs }) };
  }

  async function begin(
    tx: Db,
    party: Party,
    wish: { amountUusd: number; destination: Destination; untilMs: number },
  ): Promise<PayoutRow> {
    const [account, nowMs, id] = [accountOfParty(party), clock.now(), random.uuid()];
    const { amountUusd, destination, untilMs } = wish;
    const isCredit = destination.method === 'balance';
    const cause = causedBy(SYSTEM_ACTOR, { type: 'payout', id, atMs: nowMs, once: true });
    const row: PayoutRow = {
      ...{ id, party: account, ...destination, processor: null, external_id: null },
      ...{ amount_uusd: amountUusd, covers_until_ms: untilMs },
      hold_id: isCredit ? null : await placePayout(tx, account, amountUusd, cause),
      state: isCredit ? 'paid' : 'requested',
      ...{ attempts: 0, due_at: nowMs, last_error: null, created_at: nowMs, updated_at: nowMs },
    };
    if (isCredit) {
      const leg: Leg = { debit: account, credit: paidAccount(party.id), amountUusd };
      await postGroup(tx, [leg], cause);
      await fundsAdded(tx, { clock, random }, party.id);
      await rearmLowBalance(tx, party.id);
      await record(tx, row, 'paid');
    }
    await insertPayout(tx, row);
    return row;
  }

  /** Accounts read of it in their events, providers in their billing. */
  async function record(tx: Db, row: PayoutRow, to: PayoutState): Promise<void> {
    const party = partyOf(row.party);
    if (party?.kind !== 'referral') return;
    const isPaid = to === 'paid';
    const detail = `${formatUsdFloor(row.amount_uusd)} for referrals ${isPaid ? 'paid' : 'not paid: declined'}`;
    await recordEvent(
      tx,
      { clock, random },
      {
        ...{ accountId: party.id, actor: SYSTEM_ACTOR },
        subEventType: isPaid ? 'billing.success' : 'billing.failed',
        payload: { pod_name: null, node: null, detail },
      },
    );
  }

  async function post(tx: Db, row: PayoutRow, to: PayoutState): Promise<void> {
    const { id, amount_uusd: amountUusd, hold_id: holdId } = row;
    const party = partyOf(row.party);
    if (holdId === null || party === null) throw new Error(`payout ${id} set nothing aside`);
    const type = to === 'paid' ? 'payout-paid' : 'payout-void';
    const cause = causedBy(SYSTEM_ACTOR, { type, id, atMs: clock.now(), once: true });
    if (to === 'voided') return voidHold(tx, holdId, cause);
    if (row.state !== 'voided') return settleHold(tx, holdId, amountUusd, cause);
    // It left although it was declined before: the party owes what it may have been paid again since.
    const leg: Leg = { debit: accountOfParty(party), credit: 'external:payout', amountUusd };
    await postGroup(tx, [leg], cause);
  }

  return {
    /** Sets everything that a party can be paid aside, and has the processor asked; own credit comes at once. */
    request: (party: Party): Promise<Requested> =>
      moneyTransaction({ db, clock, random }, (tx) => requestIn(tx, party)),

    /** Notes the processor's answer. False when it changes nothing: it came before, or contradicts one that was posted. */
    async settle(id: string, processor: string, answer: PayoutAnswer): Promise<boolean> {
      return moneyTransaction({ db, clock, random }, async (tx) => {
        const row = await findPayout(tx, id);
        const to = answer.state === 'declined' ? 'voided' : answer.state;
        if (row === undefined || !REACHED_FROM[to].includes(row.state)) return false;
        const changes: Partial<PayoutRow> = {
          ...{ state: to, processor, external_id: answer.externalId ?? row.external_id },
          last_error: answer.state === 'declined' ? answer.reason.slice(0, MAX_ERROR_CHARS) : null,
          updated_at: clock.now(),
        };
        if (!(await changePayout(tx, row, changes))) return false;
        if (to === 'pending') return true;
        await post(tx, row, to);
        await record(tx, row, to);
        return true;
      });
    },
  };
}
