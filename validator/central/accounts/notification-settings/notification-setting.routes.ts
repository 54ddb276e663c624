/** GET and PUT /users/me/notification. */
import type { HttpServer } from '#shared/http/server.ts';
import { userOf } from '../../platform/identity.ts';
import {
  EffectiveNotificationSettingDto,
  NotificationSetting,
  NotificationSettingUpdateDto,
} from './notification-setting.schemas.ts';
import type { NotificationSettings } from './notification-setting.service.ts';

const tags = ['Users'];
const config = { auth: 'user' } as const;

export function registerNotificationSettingRoutes(
  api: HttpServer,
  settings: NotificationSettings,
): void {
  api.get(
    '/users/me/notification',
    {
      config,
      schema: {
        tags,
        summary: 'Read which mails the account receives',
        description: 'Returns the five switches that apply. Without stored settings all are true.',
        response: { 200: EffectiveNotificationSettingDto },
      },
    },
    (request) => settings.effective(userOf(request)),
  );
  api.put(
    '/users/me/notification',
    {
      config,
      schema: {
        tags,
        summary: 'Choose which mails the account receives',
        description:
          'Changes the given switches and stores the settings. Mails about the account itself (address, password) are always sent.',
        retry: 'Safe: a repeat stores the same values again.',
        body: NotificationSettingUpdateDto,
        response: { 200: NotificationSetting },
      },
    },
    (request) => settings.change(userOf(request), request.body),
  );
}
