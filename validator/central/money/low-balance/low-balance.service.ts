/** Low balances: thresholds of accounts, and the event and mail when a balance crosses a threshold. */
import { formatUsdFloor, microOrNull, microToUsd } from '#shared/api/money.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { wants } from '../../accounts/notification-settings/notification-setting.service.ts';
import { recordEvent } from '../../delivery/events/event.service.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import { lowBalanceMail } from '../../delivery/mail/mail-text.ts';
import type { Flag } from '../../platform/database/tables/platform.ts';
import type { Database, Db, LowBalanceThresholdRow } from '../../platform/database/tables.ts';
import { SYSTEM_ACTOR, type UserIdentity } from '../../platform/identity.ts';
import type { Funds } from '../metering/runway.ts';
import {
  checkThresholds,
  DEFAULT_THRESHOLDS,
  runwayText,
  type Thresholds,
} from './low-balance.plan.ts';
import type {
  EffectiveLowBalanceConfigDto,
  LowBalanceThreshold,
  LowBalanceThresholdUpdateDto,
} from './low-balance.schemas.ts';
import {
  deleteMarks,
  deleteThreshold,
  findThreshold,
  upsertMarks,
  upsertThreshold,
  type WatchedAccount,
  watchedAccounts,
} from './low-balance.store.ts';

/** Time after which an unsent mail about a low balance is discarded. */
const MAIL_USEFUL_MS = 24 * 3_600_000;

export type LowBalanceDeps = { db: Database; clock: Clock; random: Random; mails: Mails };
export type LowBalance = ReturnType<typeof createLowBalance>;

export function createLowBalance({ db, clock, random, mails }: LowBalanceDeps) {
  async function notify(tx: Db, accountId: string, email: string, funds: Funds): Promise<void> {
    const left = formatUsdFloor(Math.max(0, funds.available));
    const runway = runwayText(funds, clock.now());
    await recordEvent(
      tx,
      { clock, random },
      {
        accountId,
        subEventType: 'billing.status',
        actor: SYSTEM_ACTOR,
        payload: {
          pod_name: null,
          node: null,
          detail: `balance low: ${runway === null ? left : `${left}, ${runway}`}`,
          available_usd: microToUsd(funds.available),
          burn_per_hour_usd: microToUsd(funds.burnPerHour),
        },
      },
    );
    if (!(await wants(tx, accountId, 'low_balance'))) return;
    await mails.add(tx, {
      accountId,
      to: email,
      kind: 'low-balance',
      content: lowBalanceMail(left, runway),
      dedupeKey: `low-balance:${random.uuid()}`,
      usefulForMs: MAIL_USEFUL_MS,
    });
  }

  async function check(tx: Db, account: WatchedAccount, funds: Funds): Promise<void> {
    const before = {
      ofAmount: account.told_of_amount === 1,
      ofRunway: account.told_of_runway === 1,
    };
    const thresholds = thresholdsOf(account);
    const after = checkThresholds(funds, thresholds, before, clock.now());
    const { ofAmount, ofRunway } = after.notified;
    if (ofAmount !== before.ofAmount || ofRunway !== before.ofRunway) {
      await upsertMarks(tx, {
        account_id: account.id,
        told_of_amount: flag(ofAmount),
        told_of_runway: flag(ofRunway),
        updated_at: clock.now(),
      });
    }
    if (after.notify) await notify(tx, account.id, account.email, funds);
  }

  return {
    /** Returns the thresholds in effect, and which of these the account has set. */
    async effective({ accountId }: UserIdentity): Promise<EffectiveLowBalanceConfigDto> {
      return effectiveOf(await findThreshold(db, accountId));
    },

    /** Sets thresholds. Null restores the default; absent fields are unchanged. */
    async change(
      { accountId }: UserIdentity,
      body: LowBalanceThresholdUpdateDto,
    ): Promise<LowBalanceThreshold> {
      const nowMs = clock.now();
      const { threshold_usd: usd, runway_minutes: minutes } = body;
      const changes = {
        ...(usd === undefined ? {} : { threshold_uusd: microOrNull(usd) }),
        ...(minutes === undefined ? {} : { runway_minutes: minutes }),
      };
      const none = { threshold_uusd: null, runway_minutes: null };
      const row = await upsertThreshold(
        db,
        {
          account_id: accountId,
          id: random.uuid(),
          ...none,
          ...changes,
          created_at: nowMs,
          updated_at: nowMs,
        },
        { ...changes, updated_at: nowMs },
      );
      return toLowBalanceThreshold(row);
    },

    /** Checks the thresholds. Call it in the transaction of a spend, with the funds that each account has left. */
    async afterSpend(tx: Db, left: ReadonlyMap<string, Funds>): Promise<void> {
      for (const account of await watchedAccounts(tx, [...left.keys()])) {
        const funds = left.get(account.id);
        if (funds !== undefined) await check(tx, account, funds);
      }
    },
  };
}

/**
 * Clears the notifications. Call it in the transaction of a top-up, so that the account is notified again when its
 * balance next falls.
 */
export const rearmLowBalance = deleteMarks;

/** Deletes the data of an account that is being removed. */
export async function deleteLowBalanceData(tx: Db, accountId: string): Promise<void> {
  await deleteThreshold(tx, accountId);
  await deleteMarks(tx, accountId);
}

type Overrides = { threshold_uusd: number | null; runway_minutes: number | null };

function thresholdsOf({ threshold_uusd: own, runway_minutes: minutes }: Overrides): Thresholds {
  return {
    thresholdUusd: own ?? DEFAULT_THRESHOLDS.thresholdUusd,
    runwayMinutes: minutes ?? DEFAULT_THRESHOLDS.runwayMinutes,
  };
}

function effectiveOf(row: Overrides | undefined): EffectiveLowBalanceConfigDto {
  const own = row ?? { threshold_uusd: null, runway_minutes: null };
  const overridden: EffectiveLowBalanceConfigDto['overridden'] = [];
  if (own.threshold_uusd !== null) overridden.push('threshold_usd');
  if (own.runway_minutes !== null) overridden.push('runway_minutes');
  return { ...shown(thresholdsOf(own)), defaults: shown(DEFAULT_THRESHOLDS), overridden };
}

function shown({ thresholdUusd, runwayMinutes }: Thresholds) {
  return { threshold_usd: microToUsd(thresholdUusd), runway_minutes: runwayMinutes };
}

function toLowBalanceThreshold(row: LowBalanceThresholdRow): LowBalanceThreshold {
  const { threshold_uusd: own } = row;
  return {
    id: row.id,
    user_id: row.account_id,
    threshold_usd: own === null ? null : microToUsd(own),
    runway_minutes: row.runway_minutes,
    created_at: naiveUtc(row.created_at),
    updated_at: naiveUtc(row.updated_at),
  };
}

function flag(isSet: boolean): Flag {
  return isSet ? 1 : 0;
}
