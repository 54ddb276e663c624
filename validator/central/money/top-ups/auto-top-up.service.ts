/** Auto top-ups: an account's settings, and the start of a charge. top-up.service.ts applies the results of charges. */
import { microOrNull, microToUsd } from '#shared/api/money.ts';
import { type Clock, naiveUtc, startOfMonth } from '#shared/runtime/clock.ts';
import { ApiError, invalidField } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { setPaymentCustomer } from '../../accounts/account/account.service.ts';
import { accountOf, lockAccount } from '../../accounts/auth/account-access.ts';
import type { AutoTopUpRow, Database, Db } from '../../platform/database/tables.ts';
import { moneyTransaction } from '../../platform/database/transactions.ts';
import { keyIdOf, type UserIdentity } from '../../platform/identity.ts';
import type { Payments } from '../../platform/ports.ts';
import { clearDue, setDue } from '../../platform/schedule/due.ts';
import type { DueHandler } from '../../platform/schedule/schedule.ts';
import type { AccountPods } from '../account-pods.ts';
import { balanceOf, fundsIn } from '../balance/balance.service.ts';
import { refuseBudgetedKey } from '../metering/key-budget.service.ts';
import type { Funds } from '../metering/runway.ts';
import type { AutoTopUp, AutoTopUpUpdateDto } from './auto-top-up.schemas.ts';
import { shouldCharge } from './top-up.state.ts';
import {
  chargedSince,
  claimCharge,
  deleteAutoTopUp,
  findAutoTopUp,
  hasDisputed,
  insertTopUp,
  listEnabled,
  upsertAutoTopUp,
} from './top-up.store.ts';

const DAY_MS = 86_400_000;

export type AutoTopUpsDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  /** Null if this marketplace accepts no payments. */
  payments: Payments | null;
  pods: Pick<AccountPods, 'awaitMoney'>;
};
export type AutoTopUps = ReturnType<typeof createAutoTopUps>;

export function createAutoTopUps({ db, clock, random, payments, pods }: AutoTopUpsDeps) {
  /** Attaches a new payment method at the processor and stores the account's customer id at the processor. */
  async function attachMethod(caller: UserIdentity, paymentMethodId: string): Promise<void> {
    const [before, account] = [
      await findAutoTopUp(db, caller.accountId),
      await accountOf(db, caller),
    ];
    if (before?.payment_method_id === paymentMethodId) return;
    if (payments === null) throw noPayments();
    const { id: accountId, payment_customer_id: customerId } = account;
    const attached = await payments.attach({ accountId, customerId, paymentMethodId });
    if (attached.customerId !== customerId) {
      await setPaymentCustomer(db, accountId, attached.customerId, clock.now());
    }
  }

  /** Begins charges that are due. Call it in the transaction of a spend, with the funds that each account has left. */
  async function afterSpend(tx: Db, left: ReadonlyMap<string, Funds>): Promise<void> {
    if (payments === null) return;
    for (const row of await listEnabled(tx, [...left.keys()])) {
      const funds = left.get(row.account_id);
      if (funds !== undefined) await chargeIfDue(tx, payments, row, funds);
    }
  }

  async function chargeIfDue(tx: Db, { name }: Payments, row: AutoTopUpRow, funds: Funds) {
    const { account_id: accountId, payment_method_id: methodId } = row;
    const nowMs = clock.now();
    const facts = { ...factsOf(row), monthChargedUusd: 0, ...funds, awaitsMoney: true };
    // Avoids two queries for the many accounts that need no charge even under the most favourable assumptions.
    if (methodId === null || !shouldCharge(facts, nowMs)) return;
    const charged = await chargedSince(tx, accountId, startOfMonth(nowMs));
    const awaitsMoney = await pods.awaitMoney(tx, accountId);
    if (!shouldCharge({ ...facts, monthChargedUusd: charged, awaitsMoney }, nowMs)) return;
    if (!(await claimCharge(tx, row, nowMs))) return;
    await insertTopUp(tx, {
      id: random.uuid(),
      account_id: accountId,
      processor: name,
      external_id: null,
      payment_method_id: methodId,
      amount_uusd: row.amount_uusd,
      state: 'charging',
      attempts: 0,
      due_at: nowMs,
      last_error: null,
      created_at: nowMs,
      updated_at: nowMs,
    });
  }

  async function checkOne(tx: Db, accountId: string): Promise<void> {
    await afterSpend(
      tx,
      new Map([[accountId, fundsIn(await balanceOf(tx, accountId, clock.now()))]]),
    );
  }

  async function shown(row: AutoTopUpRow): Promise<AutoTopUp> {
    const month = startOfMonth(clock.now());
    return toAutoTopUp(row, await chargedSince(db, row.account_id, month));
  }

  /** Throws before any request is sent to the payment processor. */
  async function refuseBudgeted(caller: UserIdentity, body: AutoTopUpUpdateDto): Promise<void> {
    const before = await findAutoTopUp(db, caller.accountId);
    const amountUusd = microOrNull(body.amount_usd) ?? before?.amount_uusd ?? 0;
    await refuseBudgetedKey(db, keyIdOf(caller), amountUusd, clock.now());
  }

  /** Returns the row after the update. */
  function changed(
    accountId: string,
    before: AutoTopUpRow | undefined,
    body: AutoTopUpUpdateDto,
  ): AutoTopUpRow {
    const nowMs = clock.now();
    const row = { ...(before ?? newRow(accountId, random.uuid(), body, nowMs)) };
    const { enabled, threshold_usd, amount_usd, monthly_limit_usd, payment_method_id } = body;
    if (enabled !== undefined) row.enabled = enabled ? 1 : 0;
    if (threshold_usd !== undefined) row.threshold_uusd = microOrNull(threshold_usd) ?? 0;
    if (amount_usd !== undefined) row.amount_uusd = microOrNull(amount_usd) ?? 0;
    if (monthly_limit_usd !== undefined) row.monthly_limit_uusd = microOrNull(monthly_limit_usd);
    const hasOther = payment_method_id !== undefined && payment_method_id !== row.payment_method_id;
    if (payment_method_id !== undefined) row.payment_method_id = payment_method_id;
    // A new method, or enabling the auto top-up, clears the failure.
    const hasFailed = row.status === 'failed' || row.status === 'suspended';
    if ((hasOther || enabled === true) && hasFailed) {
      Object.assign(row, { status: 'idle', declines: 0, not_before: 0, last_error: null });
    }
    return { ...row, updated_at: nowMs };
  }

  return {
    /** Returns null if the account never configured an auto top-up. */
    async get({ accountId }: UserIdentity): Promise<AutoTopUp | null> {
      const row = await findAutoTopUp(db, accountId);
      return row === undefined ? null : shown(row);
    },

    /**
     * Changes the settings. Throws 422 if a first update lacks a field, `bad_request` for settings that could never
     * charge, and `API_KEY_BUDGET_EXCEEDED` for a key with a budget, which may only disable the auto top-up.
     */
    async change(caller: UserIdentity, body: AutoTopUpUpdateDto): Promise<AutoTopUp> {
      const { accountId } = caller;
      if (!onlyDisables(body)) await refuseBudgeted(caller, body);
      if (body.payment_method_id != null) await attachMethod(caller, body.payment_method_id);
      const row = await moneyTransaction({ db, clock, random }, async (tx) => {
        await lockAccount(tx, caller);
        const after = changed(accountId, await findAutoTopUp(tx, accountId), body);
        if (after.enabled === 1) {
          requireChargeable(after, payments);
          await requireUndisputed(tx, after);
        }
        await upsertAutoTopUp(tx, after);
        if (after.enabled === 0) await clearDue(tx, 'top-up', accountId);
        else {
          await checkOne(tx, accountId);
          await setDue(tx, 'top-up', accountId, clock.now() + DAY_MS);
        }
        return (await findAutoTopUp(tx, accountId)) ?? after;
      });
      return shown(row);
    },

    afterSpend,

    /** Daily check for accounts that need a charge although no spend has triggered one. */
    daily: {
      async run(tx, { subject, nowMs }) {
        const row = await findAutoTopUp(tx, subject);
        if (row === undefined || row.enabled === 0) return undefined;
        await checkOne(tx, subject);
        return { againAtMs: nowMs + DAY_MS };
      },
    } satisfies DueHandler,
  };
}

/** Deletes the auto top-up of an account that is being removed. Its charges are kept as records of money. */
export async function deleteAutoTopUpData(tx: Db, accountId: string): Promise<void> {
  await deleteAutoTopUp(tx, accountId);
  await clearDue(tx, 'top-up', accountId);
}

function noPayments(): ApiError {
  return new ApiError('bad_request', 'This marketplace accepts no payments', {
    hint: 'Ask the operator for credit.',
  });
}

function requireChargeable(row: AutoTopUpRow, payments: Payments | null): void {
  if (payments === null) throw noPayments();
  if (row.payment_method_id === null) {
    throw new ApiError('bad_request', 'An enabled auto top-up needs a payment method', {
      hint: 'Send payment_method_id, or disable the auto top-up.',
    });
  }
  if (row.monthly_limit_uusd !== null && row.monthly_limit_uusd < row.amount_uusd) {
    throw new ApiError('bad_request', 'The monthly limit is below the amount of one top-up', {
      hint: 'Raise monthly_limit_usd or lower amount_usd.',
    });
  }
}

/** Throws `bad_request` for a payment method with a disputed charge. */
async function requireUndisputed(tx: Db, row: AutoTopUpRow): Promise<void> {
  const { account_id: accountId, payment_method_id: methodId } = row;
  if (methodId === null || row.status === 'suspended') return;
  if (!(await hasDisputed(tx, accountId, methodId))) return;
  throw new ApiError('bad_request', 'A charge of this payment method was disputed', {
    hint: 'Use another payment method, or ask the operator for credit.',
  });
}

/** Returns a first row with defaults. Throws 422 that names a missing field. */
function newRow(
  accountId: string,
  id: string,
  body: AutoTopUpUpdateDto,
  nowMs: number,
): AutoTopUpRow {
  for (const field of ['enabled', 'threshold_usd', 'amount_usd'] as const) {
    if (body[field] === undefined) {
      throw invalidField(`body.${field}`, 'Field required in the first update', 'missing');
    }
  }
  return {
    account_id: accountId,
    id,
    enabled: 0,
    threshold_uusd: 0,
    amount_uusd: 0,
    monthly_limit_uusd: null,
    payment_method_id: null,
    status: 'idle',
    declines: 0,
    not_before: 0,
    last_attempt_at: null,
    last_error: null,
    created_at: nowMs,
    updated_at: nowMs,
  };
}

/** Returns true for a request that disables the auto top-up and changes nothing else. */
function onlyDisables({ enabled, ...others }: AutoTopUpUpdateDto): boolean {
  return enabled === false && Object.values(others).every((value) => value === undefined);
}

function factsOf(row: AutoTopUpRow) {
  return {
    enabled: row.enabled === 1,
    hasMethod: row.payment_method_id !== null,
    status: row.status,
    notBeforeMs: row.not_before,
    thresholdUusd: row.threshold_uusd,
    amountUusd: row.amount_uusd,
    monthlyLimitUusd: row.monthly_limit_uusd,
  };
}

function toAutoTopUp(row: AutoTopUpRow, monthChargedUusd: number): AutoTopUp {
  const { monthly_limit_uusd: limit, last_attempt_at: attemptMs } = row;
  return {
    id: row.id,
    user_id: row.account_id,
    enabled: row.enabled === 1,
    threshold_usd: microToUsd(row.threshold_uusd),
    amount_usd: microToUsd(row.amount_uusd),
    monthly_limit_usd: limit === null ? null : microToUsd(limit),
    payment_method_id: row.payment_method_id,
    status: row.status,
    month_charged_usd: microToUsd(monthChargedUusd),
    last_attempt_at: attemptMs === null ? null : naiveUtc(attemptMs),
    last_error: row.last_error,
    created_at: naiveUtc(row.created_at),
    updated_at: naiveUtc(row.updated_at),
  };
}
