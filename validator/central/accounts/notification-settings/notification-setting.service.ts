/** Notification settings: which kinds of mails an account receives. All are on by default. */
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

export function createNotificationSettings(deps: { db: Database; clock: Clock; random: Random }) {
  const { db, clock, random } = deps;
  return {
    /** Settings in effect. Does not create a row. */
    async effective({ accountId }: UserIdentity): Promise<EffectiveNotificationSettingDto> {
      const row = await findNotificationSetting(db, accountId);
      return { ...shown(row ?? ALL_ON), is_default: row === undefined };
    },

    /** Changes the given flags; absent flags are unchanged. */
    async change(
      { accountId }: UserIdentity,
      body: NotificationSettingUpdateDto,
    ): Promise<NotificationSetting> {
      const nowMs = clock.now();
      const changes = flagsIn(body);
      const row = await upsertNotificationSetting(
        db,
        {
          account_id: accountId,
          id: random.uuid(),
          ...ALL_ON,
          ...changes,
          created_at: nowMs,
          updated_at: nowMs,
        },
        { ...changes, updated_at: nowMs },
      );
      return toNotificationSetting(row);
    },
  };
}

/** Returns true if mails of this kind are enabled for the account. */
export async function wants(db: Db, accountId: string, flag: NotificationFlag): Promise<boolean> {
  const row = await findNotificationSetting(db, accountId);
  return (row ?? ALL_ON)[flag] === 1;
}

/** Deletes the settings of an account that is being removed. */
export const deleteNotificationSettings = deleteNotificationSetting;

function flagsIn(body: NotificationSettingUpdateDto): Partial<Flags> {
  const set = Object.entries(body).filter(([, isOn]) => isOn !== undefined);
  return Object.fromEntries(set.map(([flag, isOn]) => [flag, isOn ? 1 : 0]));
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
