/** Audit entries: the actions of operators with their reasons. Entries are never changed or removed. */
import { ApiError } from '#shared/runtime/errors.ts';
import type { AuditEntry, Db } from '../database/tables.ts';

export type { AuditEntry } from '../database/tables.ts';

/** Longest reason, in characters. */
export const MAX_REASON_CHARS = 500;

/** Writes an entry in the transaction of the action. */
export async function recordAudit(tx: Db, entry: Omit<AuditEntry, 'seq'>): Promise<void> {
  await tx.insertInto('audit_entries').values(entry).execute();
}

/** Returns the reason without white space at its ends. Throws `bad_request` if it is empty or too long. */
export function requireReason(reason: string): string {
  const text = reason.trim();
  if (text !== '' && text.length <= MAX_REASON_CHARS) return text;
  throw new ApiError('bad_request', `A reason of 1 to ${MAX_REASON_CHARS} characters is required`, {
    hint: 'State why; the audit entry keeps it.',
  });
}

/** Returns the newest entries, of one subject or of all. */
export function listAudit(
  db: Db,
  { subject, limit }: { subject?: Pick<AuditEntry, 'subject_type' | 'subject_id'>; limit: number },
): Promise<AuditEntry[]> {
  const all = db.selectFrom('audit_entries').selectAll().orderBy('seq', 'desc').limit(limit);
  if (subject === undefined) return all.execute();
  return all
    .where('subject_type', '=', subject.subject_type)
    .where('subject_id', '=', subject.subject_id)
    .execute();
}
