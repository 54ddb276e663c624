/** Queries of the sessions table. */

import type { Selectable } from 'kysely';
import { prepared, type Slots } from '../../platform/database/prepared.ts';
import type { SessionsTable } from '../../platform/database/tables/accounts.ts';
import type { Db } from '../../platform/database/tables.ts';

export type Session = Selectable<SessionsTable>;
export type SessionSubject = Pick<Session, 'kind' | 'subject_id'>;

export async function insertSession(db: Db, session: Session): Promise<void> {
  await db.insertInto('sessions').values(session).execute();
}

const byId = prepared((db, { id }: Slots<{ id: string }>) =>
  db.selectFrom('sessions').selectAll().where('id', '=', id),
);

/** Finds a session, whether revoked or not. */
export async function findSession(db: Db, id: string): Promise<Session | undefined> {
  return (await byId(db, { id })).rows[0];
}

/** Returns the ids that are neither revoked nor expired. */
export async function listLiveSessionIds(
  db: Db,
  ids: readonly string[],
  nowMs: number,
): Promise<string[]> {
  if (ids.length === 0) return [];
  const rows = await db
    .selectFrom('sessions')
    .select('id')
    .where('id', 'in', ids)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', nowMs)
    .execute();
  return rows.map(({ id }) => id);
}

/** Returns a page of the subject's valid sessions, newest first, and the number of all. */
export async function listSessions(
  db: Db,
  { kind, subject_id }: SessionSubject,
  { offset, limit, nowMs }: { offset: number; limit: number; nowMs: number },
): Promise<{ rows: Session[]; total: number }> {
  const live = db
    .selectFrom('sessions')
    .where('kind', '=', kind)
    .where('subject_id', '=', subject_id)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', nowMs);
  const rows = await live
    .selectAll()
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .offset(offset)
    .limit(limit)
    .execute();
  const { total } = await live
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow();
  return { rows, total };
}

/**
 * Revokes a valid session of the subject, and the sessions that its tickets began, directly or through each other.
 * Returns false if the subject has no such session.
 */
export async function revokeSession(
  tx: Db,
  { kind, subject_id }: SessionSubject,
  { id, nowMs }: { id: string; nowMs: number },
): Promise<boolean> {
  const done = await tx
    .withRecursive('ended(id)', (db) =>
      db
        .selectFrom('sessions')
        .select('id')
        .where('id', '=', id)
        .where('kind', '=', kind)
        .where('subject_id', '=', subject_id)
        .where('revoked_at', 'is', null)
        .where('expires_at', '>', nowMs)
        .union(
          db
            .selectFrom('sessions')
            .innerJoin('ended', 'ended.id', 'sessions.creator_session_id')
            .select('sessions.id'),
        ),
    )
    .updateTable('sessions')
    .set({ revoked_at: nowMs })
    .where('id', 'in', (db) => db.selectFrom('ended').select('id'))
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** Revokes every session of a subject except `exceptId`. */
export async function revokeSessions(
  db: Db,
  subject: SessionSubject,
  nowMs: number,
  exceptId: string | null,
): Promise<void> {
  await db
    .updateTable('sessions')
    .set({ revoked_at: nowMs })
    .where('kind', '=', subject.kind)
    .where('subject_id', '=', subject.subject_id)
    .where('revoked_at', 'is', null)
    .$if(exceptId !== null, (query) => query.where('id', '!=', exceptId ?? ''))
    .execute();
}

export async function deleteExpiredSessions(db: Db, nowMs: number): Promise<void> {
  await db.deleteFrom('sessions').where('expires_at', '<=', nowMs).execute();
}

export async function findProviderHotkey(db: Db, providerId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('providers')
    .select('hotkey')
    .where('id', '=', providerId)
    .executeTakeFirst();
  return row?.hotkey;
}
