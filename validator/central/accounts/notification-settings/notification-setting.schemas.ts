/** Wire schemas of notification settings. */
import { z } from 'zod';
import { NaiveTime, optional } from '../../platform/wire.ts';

/** Kinds of mails that can be switched off. */
export const NOTIFICATION_FLAGS = [
  'low_balance',
  'notice_period',
  'pod_failed',
  'scheduled_removal',
  'machine_request',
] as const;
export type NotificationFlag = (typeof NOTIFICATION_FLAGS)[number];

const flags = {
  low_balance: z.boolean(),
  notice_period: z.boolean(),
  pod_failed: z.boolean(),
  scheduled_removal: z.boolean(),
  machine_request: z.boolean(),
};
const change = optional(z.boolean());

export const EffectiveNotificationSettingDto = z
  .object({ ...flags, is_default: z.boolean() })
  .meta({ id: 'EffectiveNotificationSettingDto' });
export type EffectiveNotificationSettingDto = z.output<typeof EffectiveNotificationSettingDto>;

export const NotificationSettingUpdateDto = z
  .object({
    low_balance: change,
    notice_period: change,
    pod_failed: change,
    scheduled_removal: change,
    machine_request: change,
  })
  .meta({ id: 'NotificationSettingUpdateDto' });
export type NotificationSettingUpdateDto = z.output<typeof NotificationSettingUpdateDto>;

export const NotificationSetting = z
  .object({
    id: z.uuid(),
    user_id: z.uuid(),
    ...flags,
    created_at: NaiveTime,
    updated_at: NaiveTime,
  })
  .meta({ id: 'NotificationSetting' });
export type NotificationSetting = z.output<typeof NotificationSetting>;
