/** Audit entries: the actions of operators with their reasons. Entries are never changed or removed. */
import { ApiError } from '#shared/runtime/errors.ts';
import type { AuditEntry, Db } from '../database/tables.ts';

export type { AuditEntry } from '../database/tables.ts';

/** Longest reason, in characters. */
export const MAX_REASON_CHARS = 500;

/** Writes an entry. Runs in the transaction of the action. */
export async function recordAudit(tx: Db, entry: Omit<AuditEntry, 'seq'>): Promise<void> {
  await tx.insertInto('audit_entries').values(entry).execute();
}

/** Returns the reason without white space at its ends. Throws `bad_request` if it is empty or too long. */
export function requireReason(reason: string): string {
  const text = reason.trim();
  if (text !== '' && text.length <= MAX_REASON_CHARS) return text;
  throw new ApiError('bad_request', `A reason of 1 to ${MAX_REASON_CHARS} characters is required`, {
    hint: 'State the reason for the action; the audit entry contains it.',
  });
}

export type AuditList = {
  /** Default: entries of all subjects. */
  subject?: Pick<AuditEntry, 'subject_type' | 'subject_id'> | undefined;
  /** Returns only entries with a lower number; default: no such limit. */
  before?: number | undefined;
  limit: number;
};

/** Returns audit entries, newest first. */
export function listAudit(db: Db, { subject, before, limit }: AuditList): Promise<AuditEntry[]> {
  let all = db.selectFrom('audit_entries').selectAll().orderBy('seq', 'desc').limit(limit);
  if (before !== undefined) all = all.where('seq', '<', before);
  if (subject === undefined) return all.execute();
  return all
    .where('subject_type', '=', subject.subject_type)
    .where('subject_id', '=', subject.subject_id)
    .execute();
}

/** Returns the newest reason of an action for each subject. Subjects without the action are omitted. */
export async function reasonsOf(
  db: Db,
  { action, subjectIds }: { action: string; subjectIds: readonly string[] },
): Promise<ReadonlyMap<string, string>> {
  if (subjectIds.length === 0) return new Map();
  const newest = db
    .selectFrom('audit_entries')
    .select((eb) => eb.fn.max('seq').as('seq'))
    .where('action', '=', action)
    .where('subject_id', 'in', subjectIds)
    .groupBy('subject_id');
  const rows = await db
    .selectFrom('audit_entries')
    .select(['subject_id', 'reason'])
    .where('seq', 'in', newest)
    .execute();
  return new Map(rows.map(({ subject_id: id, reason }) => [id, reason]));
}
