/** What an account wants mails about: everything, until it says otherwise (specification, Resources). */

import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Flag } from '../../platform/database/tables/platform.ts';
import type { Database, Db, NotificationSettingRow } from '../../platform/database/tables.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import type {
  EffectiveNotificationSettingDto,
  NotificationFlag,
  NotificationSetting,
  NotificationSettingUpdateDto,
} from './notification-setting.schemas.ts';
import {
  deleteNotificationSetting,
  findNotificationSetting,
  upsertNotificationSetting,
} from './notification-setting.store.ts';

type Flags = Record<NotificationFlag, Flag>;

const ALL_ON: Flags = {
  low_balance: 1,
  notice_period: 1,
  pod_failed: 1,
  scheduled_removal: 1,
  machine_request: 1,
};

export type NotificationSettings = ReturnType<typeof createNotificationSettings>;

/** Rules of the settings. */
export function createNotificationSettings(deps: { db: Database; clock: Clock; random: Random }) {
  const { db, clock, random } = deps;
  return {
    /** Reading makes no row. */
    async effective({ accountId }: UserIdentity): Promise<EffectiveNotificationSettingDto> {
      const row = await findNotificationSetting(db, accountId);
      return { ...shown(row ?? ALL_ON), is_default: row === undefined };
    },

    /** Flags that are not named stay. */
    async change(
      { accountId }: UserIdentity,
      body: NotificationSettingUpdateDto,
    ): Promise<NotificationSetting> {
      const nowMs = clock.now();
      const given = stored(body);
      const row = await upsertNotificationSetting(
        db,
        {
          ...{ account_id: accountId, id: random.uuid(), ...ALL_ON, ...given },
          ...{ created_at: nowMs, updated_at: nowMs },
        },
        { ...given, updated_at: nowMs },
      );
      return toNotificationSetting(row);
    },
  };
}

/** Whether the account is to get mails of this kind. */
export async function wants(db: Db, accountId: string, flag: NotificationFlag): Promise<boolean> {
  const row = await findNotificationSetting(db, accountId);
  return (row ?? ALL_ON)[flag] === 1;
}

/** Removes those of an account that is being deleted. */
export const forgetNotificationSetting = deleteNotificationSetting;

function stored(body: NotificationSettingUpdateDto): Partial<Flags> {
  const given = Object.entries(body).filter(([, isOn]) => isOn !== undefined);
  return Object.fromEntries(given.map(([flag, isOn]) => [flag, isOn ? 1 : 0]));
}

function shown(flags: Flags): Record<NotificationFlag, boolean> {
  return {
    low_balance: flags.low_balance === 1,
    notice_period: flags.notice_period === 1,
    pod_failed: flags.pod_failed === 1,
    scheduled_removal: flags.scheduled_removal === 1,
    machine_request: flags.machine_request === 1,
  };
}

function toNotificationSetting(row: NotificationSettingRow): NotificationSetting {
  return {
    id: row.id,
    user_id: row.account_id,
    ...shown(row),
    created_at: naiveUtc(row.created_at),
    updated_at: naiveUtc(row.updated_at),
  };
}
