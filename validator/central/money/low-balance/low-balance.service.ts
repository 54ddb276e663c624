/** Low balances: the thresholds of accounts, and who is told when one is crossed (marketplace reference 1.6). */

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
import {
  DEFAULT_THRESHOLDS,
  type Funds,
  judgeFunds,
  runwayText,
  type Thresholds,
} from './low-balance.rule.ts';
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

/** What a mail says of a balance is old after this. */
const MAIL_USEFUL_MS = 24 * 3_600_000;

export type LowBalanceDeps = { db: Database; clock: Clock; random: Random; mails: Mails };
export type LowBalance = ReturnType<typeof createLowBalance>;

/** Rules of thresholds and of crossing them. */
export function createLowBalance({ db, clock, random, mails }: LowBalanceDeps) {
  async function tell(tx: Db, accountId: string, email: string, funds: Funds): Promise<void> {
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
          ...{ pod_name: null, node: null },
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

  async function follow(tx: Db, account: WatchedAccount, funds: Funds): Promise<void> {
    const before = {
      ofAmount: account.told_of_amount === 1,
      ofRunway: account.told_of_runway === 1,
    };
    const { tell: isNew, told } = judgeFunds(funds, thresholdsOf(account), before, clock.now());
    if (told.ofAmount !== before.ofAmount || told.ofRunway !== before.ofRunway) {
      await upsertMarks(tx, {
        account_id: account.id,
        told_of_amount: flag(told.ofAmount),
        told_of_runway: flag(told.ofRunway),
        updated_at: clock.now(),
      });
    }
    if (isNew) await tell(tx, account.id, account.email, funds);
  }

  return {
    /** Reading makes no row. */
    async effective({ accountId }: UserIdentity): Promise<EffectiveLowBalanceConfigDto> {
      return effectiveOf(await findThreshold(db, accountId));
    },

    /** Null takes an override away, absent leaves it. */
    async change(
      { accountId }: UserIdentity,
      body: LowBalanceThresholdUpdateDto,
    ): Promise<LowBalanceThreshold> {
      const nowMs = clock.now();
      const { threshold_usd: usd, runway_minutes: minutes } = body;
      const given = {
        ...(usd === undefined ? {} : { threshold_uusd: microOrNull(usd) }),
        ...(minutes === undefined ? {} : { runway_minutes: minutes }),
      };
      const none = { threshold_uusd: null, runway_minutes: null };
      const row = await upsertThreshold(
        db,
        {
          ...{ account_id: accountId, id: random.uuid(), ...none, ...given },
          ...{ created_at: nowMs, updated_at: nowMs },
        },
        { ...given, updated_at: nowMs },
      );
      return toLowBalanceThreshold(row);
    },

    /** To be called in the transaction of a spend, with what each account has left after it. */
    async watch(tx: Db, left: ReadonlyMap<string, Funds>): Promise<void> {
      for (const account of await watchedAccounts(tx, [...left.keys()])) {
        const funds = left.get(account.id);
        if (funds !== undefined) await follow(tx, account, funds);
      }
    },
  };
}

/** To be called in the transaction of a top-up: whoever falls below a threshold again is told again. */
export const rearmLowBalance = deleteMarks;

/** Removes what is kept for an account that is being deleted. */
export async function forgetLowBalance(tx: Db, accountId: string): Promise<void> {
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
