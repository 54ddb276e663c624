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
    { config, schema: { tags, response: { 200: EffectiveNotificationSettingDto } } },
    (request) => settings.effective(userOf(request)),
  );
  api.put(
    '/users/me/notification',
    {
      config,
      schema: { tags, body: NotificationSettingUpdateDto, response: { 200: NotificationSetting } },
    },
    (request) => settings.change(userOf(request), request.body),
  );
}
