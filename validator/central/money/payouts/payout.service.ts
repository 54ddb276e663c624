/**
 * Payouts of earnings: a party has at most one open payout, and each payout is decided once, however often the request
 * or the answer is repeated.
 */
import { formatUsdFloor } from '#shared/api/money.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { referralDestination } from '../../accounts/account/referral-payout.ts';
import { recordEvent } from '../../delivery/events/event.service.ts';
import type { Database, Db, PayoutRow } from '../../platform/database/tables.ts';
import { lockRow, moneyTransaction } from '../../platform/database/transactions.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import type { PayoutAnswer } from '../../platform/ports.ts';
import type { AccountPods } from '../account-pods.ts';
import { causedBy, type LedgerAccount, type Leg } from '../ledger/double-entry.ts';
import { holdPayout, settleHold, voidHold } from '../ledger/hold.service.ts';
import { postGroup } from '../ledger/ledger.service.ts';
import { lockedBalancesOf, paidAccount } from '../ledger/wallet.service.ts';
import { rearmLowBalance } from '../low-balance/low-balance.service.ts';
import { providerAccount } from '../metering/settlement.plan.ts';
import { referralAccount } from '../referrals/referral.service.ts';
import {
  MINIMUM_UUSD,
  type PayoutMethod,
  type PayoutState,
  payable,
  payableBefore,
  REACHED_FROM,
} from './payout.state.ts';
import {
  changePayout,
  earnedSince,
  findOpen,
  findPayout,
  fromFeesSince,
  insertPayout,
} from './payout.store.ts';

const MAX_ERROR_CHARS = 200;

/** Owner of earnings; `id` is that of a provider or of an account. */
export type Party = { kind: 'provider' | 'referral'; id: string };

type Destination = { method: PayoutMethod; address: string; network: string | null };

export type PayoutsDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  pods: Pick<AccountPods, 'lock' | 'restart'>;
  /** Returns the key to which a provider is paid; null if the provider is banned or unknown. */
  payoutKeyOf(db: Db, providerId: string): Promise<string | null>;
};

/** Reason why nothing is paid out. */
export type Refusal = 'open' | 'no_destination' | 'too_little';
export type PayoutRequest = { payout: PayoutRow } | { refused: Refusal; payableUusd: number };

export type Payouts = ReturnType<typeof createPayouts>;

export function createPayouts({ db, clock, random, pods, payoutKeyOf }: PayoutsDeps) {
  async function requestIn(tx: Db, party: Party): Promise<PayoutRequest> {
    await lockParty(tx, party);
    const account = accountOfParty(party);
    const untilMs = payableBefore(clock.now());
    const { posted: balance, pending } = await lockedBalancesOf(tx, account);
    const withheld = await (party.kind === 'provider'
      ? earnedSince(tx, party.id, untilMs)
      : fromFeesSince(tx, account, untilMs));
    const amountUusd = payable({ balance, pending, withheld });
    const refuse = (refused: Refusal) => ({ refused, payableUusd: amountUusd });
    if ((await findOpen(tx, account)) !== undefined) return refuse('open');
    const destination = await destinationOf(tx, party);
    if (destination === null) return refuse('no_destination');
    if (amountUusd < MINIMUM_UUSD[destination.method]) return refuse('too_little');
    return { payout: await begin(tx, party, { amountUusd, destination, untilMs }) };
  }

  /**
   * Locks a party against concurrent requests. The pods of an account are locked too, because a payout as credit may
   * restart them.
   */
  function lockParty(tx: Db, { kind, id }: Party): Promise<void> {
    return kind === 'provider' ? lockRow(tx, 'providers', id) : pods.lock(tx, [id]);
  }

  /** Returns null for a banned provider, and for an account that is deleted or has no usable payout method. */
  async function destinationOf(tx: Db, { kind, id }: Party): Promise<Destination | null> {
    if (kind === 'referral') return referralDestination(tx, id);
    const address = await payoutKeyOf(tx, id);
    return address === null ? null : { method: 'hotkey', address, network: null };
  }

  /** Holds the amount. A payout to the account's own credit is paid at once instead. */
  async function begin(
    tx: Db,
    party: Party,
    order: { amountUusd: number; destination: Destination; untilMs: number },
  ): Promise<PayoutRow> {
    const [account, nowMs, id] = [accountOfParty(party), clock.now(), random.uuid()];
    const { amountUusd, destination, untilMs } = order;
    const isCredit = destination.method === 'balance';
    const cause = causedBy(SYSTEM_ACTOR, { type: 'payout', id, atMs: nowMs, once: true });
    const row: PayoutRow = {
      id,
      party: account,
      ...destination,
      processor: null,
      external_id: null,
      amount_uusd: amountUusd,
      covers_until_ms: untilMs,
      hold_id: isCredit ? null : await holdPayout(tx, account, amountUusd, cause),
      state: isCredit ? 'paid' : 'requested',
      attempts: 0,
      due_at: nowMs,
      last_error: null,
      created_at: nowMs,
      updated_at: nowMs,
    };
    if (isCredit) {
      const leg: Leg = { debit: account, credit: paidAccount(party.id), amountUusd };
      await postGroup(tx, [leg], cause);
      await pods.restart(tx, party.id);
      await rearmLowBalance(tx, party.id);
      await record(tx, row, 'paid');
    }
    await insertPayout(tx, row);
    return row;
  }

  /** Writes an event for referral payouts. Providers see their payouts in their billing. */
  async function record(tx: Db, row: PayoutRow, to: PayoutState): Promise<void> {
    const party = partyOf(row.party);
    if (party?.kind !== 'referral') return;
    const isPaid = to === 'paid';
    const detail = `${formatUsdFloor(row.amount_uusd)} for referrals ${isPaid ? 'paid' : 'not paid: declined'}`;
    await recordEvent(
      tx,
      { clock, random },
      {
        accountId: party.id,
        actor: SYSTEM_ACTOR,
        subEventType: isPaid ? 'billing.success' : 'billing.failed',
        payload: { pod_name: null, node: null, detail },
      },
    );
  }

  async function post(tx: Db, row: PayoutRow, to: PayoutState): Promise<void> {
    const { id, amount_uusd: amountUusd, hold_id: holdId } = row;
    const party = partyOf(row.party);
    if (holdId === null || party === null) throw new Error(`payout ${id} has no hold`);
    const type = to === 'paid' ? 'payout-paid' : 'payout-void';
    const cause = causedBy(SYSTEM_ACTOR, { type, id, atMs: clock.now(), once: true });
    if (to === 'voided') return voidHold(tx, holdId, cause);
    if (row.state !== 'voided') return settleHold(tx, holdId, amountUusd, cause);
    // The processor paid after it had declined. The amount is debited from the party, whose balance may become negative.
    const leg: Leg = { debit: accountOfParty(party), credit: 'external:payout', amountUusd };
    await postGroup(tx, [leg], cause);
  }

  return {
    /** Requests a payout of everything that a party can be paid. The payout job then sends it to the processor. */
    request: (party: Party): Promise<PayoutRequest> =>
      moneyTransaction({ db, clock, random }, (tx) => requestIn(tx, party)),

    /** Declines a payout whose party may not be paid any more, such as a provider that was banned; otherwise null. */
    async withdrawalOf(row: PayoutRow): Promise<PayoutAnswer | null> {
      const party = partyOf(row.party);
      if (party !== null && (await destinationOf(db, party)) !== null) return null;
      const reason = 'the provider is banned, or the account has no payout method any more';
      return { state: 'declined', externalId: null, reason };
    },

    /** Applies the processor's answer. Returns false if it is a repetition or contradicts one that was posted. */
    async settle(id: string, processor: string, answer: PayoutAnswer): Promise<boolean> {
      return moneyTransaction({ db, clock, random }, async (tx) => {
        const row = await findPayout(tx, id);
        const to = answer.state === 'declined' ? 'voided' : answer.state;
        if (row === undefined || !REACHED_FROM[to].includes(row.state)) return false;
        const changes: Partial<PayoutRow> = {
          state: to,
          processor,
          external_id: answer.externalId ?? row.external_id,
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

/** Returns the party of a ledger account; null for accounts of other kinds. */
export function partyOf(ledgerAccount: string): Party | null {
  const [kind, id] = ledgerAccount.split(':');
  if (id === undefined || (kind !== 'provider' && kind !== 'referral')) return null;
  return { kind, id };
}

export function accountOfParty({ kind, id }: Party): LedgerAccount {
  return kind === 'provider' ? providerAccount(id) : referralAccount(id);
}
