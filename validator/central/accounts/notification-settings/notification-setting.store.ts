/** Queries of the notification_settings table. */
import type { Db, NotificationSettingRow } from '../../platform/database/tables.ts';

/** Returns undefined for an account that uses the defaults. */
export function findNotificationSetting(
  db: Db,
  accountId: string,
): Promise<NotificationSettingRow | undefined> {
  return db
    .selectFrom('notification_settings')
    .selectAll()
    .where('account_id', '=', accountId)
    .executeTakeFirst();
}

/** Inserts `fresh`, or applies `changes` to the row that exists. Returns the resulting row. */
export function upsertNotificationSetting(
  db: Db,
  fresh: NotificationSettingRow,
  changes: Partial<NotificationSettingRow>,
): Promise<NotificationSettingRow> {
  return db
    .insertInto('notification_settings')
    .values(fresh)
    .onConflict((conflict) => conflict.column('account_id').doUpdateSet(changes))
    .returningAll()
    .executeTakeFirstOrThrow();
}

export async function deleteNotificationSetting(db: Db, accountId: string): Promise<void> {
  await db.deleteFrom('notification_settings').where('account_id', '=', accountId).execute();
}
