/** Wire schemas of notification settings. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { CREATED_AT, UPDATED_AT } from '../../platform/openapi/field-texts.ts';
import { NaiveTime, optional } from '../../platform/wire.ts';

/** Kinds of mails that an account can switch off. */
export const NOTIFICATION_FLAGS = [
  'low_balance',
  'notice_period',
  'pod_failed',
  'scheduled_removal',
  'machine_request',
] as const;
export type NotificationFlag = (typeof NOTIFICATION_FLAGS)[number];

const flags = described(
  {
    low_balance: z.boolean(),
    notice_period: z.boolean(),
    pod_failed: z.boolean(),
    scheduled_removal: z.boolean(),
    machine_request: z.boolean(),
  },
  {
    low_balance: 'True if mails about a low balance are sent.',
    notice_period: 'True if mails about announced maintenance or removal of a node are sent.',
    pod_failed: 'True if mails about failed pods are sent.',
    scheduled_removal: 'True if mails before the scheduled removal of a pod are sent.',
    machine_request: 'True if mails about fulfilled machine requests are sent.',
  },
);
const change = optional(z.boolean());

export const EffectiveNotificationSettingDto = z
  .object({
    ...flags,
    ...described(
      { is_default: z.boolean() },
      { is_default: 'True if the account never changed its settings, so that all mails are sent.' },
    ),
  })
  .meta({ id: 'EffectiveNotificationSettingDto' });
export type EffectiveNotificationSettingDto = z.output<typeof EffectiveNotificationSettingDto>;

export const NotificationSettingUpdateDto = z
  .object(
    described(
      {
        low_balance: change,
        notice_period: change,
        pod_failed: change,
        scheduled_removal: change,
        machine_request: change,
      },
      {
        low_balance: 'Send mails about a low balance. Absent or null leaves the setting unchanged.',
        notice_period:
          'Send mails about announced maintenance or removal of a node. Absent or null leaves the setting unchanged.',
        pod_failed: 'Send mails about failed pods. Absent or null leaves the setting unchanged.',
        scheduled_removal:
          'Send mails before the scheduled removal of a pod. Absent or null leaves the setting unchanged.',
        machine_request:
          'Send mails about fulfilled machine requests. Absent or null leaves the setting unchanged.',
      },
    ),
  )
  .meta({ id: 'NotificationSettingUpdateDto', example: { scheduled_removal: false } });
export type NotificationSettingUpdateDto = z.output<typeof NotificationSettingUpdateDto>;

export const NotificationSetting = z
  .object({
    ...flags,
    ...described(
      { id: z.uuid(), user_id: z.uuid(), created_at: NaiveTime, updated_at: NaiveTime },
      {
        id: 'Id of the stored settings.',
        user_id: 'Id of the account.',
        created_at: CREATED_AT,
        updated_at: UPDATED_AT,
      },
    ),
  })
  .meta({ id: 'NotificationSetting' });
export type NotificationSetting = z.output<typeof NotificationSetting>;
