/** Queries of the feedback table. */
import type { Db, Feedback } from '../../platform/database/tables.ts';

export async function insertFeedback(db: Db, row: Feedback): Promise<void> {
  await db.insertInto('feedback').values(row).execute();
}

export async function countFeedback(db: Db, podId: string): Promise<number> {
  const row = await db
    .selectFrom('feedback')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('pod_id', '=', podId)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

/** Clears the comments and attachments of an account; its ratings are kept. */
export async function clearFeedbackOf(db: Db, accountId: string): Promise<void> {
  const cleared = { comment: null, contact_ok: 0, attachment_keys_json: '[]' } as const;
  await db.updateTable('feedback').set(cleared).where('account_id', '=', accountId).execute();
}
