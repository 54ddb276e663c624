/** Session tokens: JWTs that name a row of the sessions table, so that they can be revoked. */
import { CompactSign, compactVerify } from 'jose';
import { z } from 'zod';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Database, Db } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import { deriveKey } from './derived-key.ts';
import {
  deleteExpiredSessions,
  findSession,
  insertSession,
  listLiveSessionIds,
  listSessions,
  revokeSession,
  revokeSessions,
} from './session.store.ts';

/** The JWT's audience: `user` for accounts, `portal` for providers. */
export type SessionKind = 'user' | 'portal';

/** Tables of the subjects, whose rows are locked while their sessions begin or end. */
export const SUBJECTS = { user: 'accounts', portal: 'providers' } as const satisfies Record<
  SessionKind,
  string
>;

/** A signed token, which becomes valid when the transaction of `store` commits. */
export type SignedSession = {
  token: string;
  sessionId: string;
  expiresAtMs: number;
  store(db: Db): Promise<void>;
};

export type SessionCheck =
  | { state: 'valid'; subjectId: string; sessionId: string }
  | { state: 'expired' }
  | { state: 'invalid' };

const LIFETIME_MS = 7 * 24 * 60 * 60 * 1000;
const ALGORITHM = 'HS256';
/** Maximum length of a token; longer tokens are rejected unread. Valid tokens have about 300 characters. */
const MAX_TOKEN_CHARS = 2_000;
const MAX_CLIENT_CHARS = 200;

const Claims = z.object({
  sub: z.string(),
  jti: z.string(),
  aud: z.enum(['user', 'portal']),
  iat: z.int(),
  exp: z.int(),
});

export type Sessions = ReturnType<typeof createSessions>;

export type SessionDeps = {
  clock: Clock;
  random: Random;
  secret: Uint8Array;
  /** Milliseconds from the log-in to the expiry. Default: seven days. */
  lifetimeMs?: number | undefined;
};

/** Issues, checks and revokes session tokens. Every check reads the database, so a revocation takes effect at once. */
export function createSessions(deps: SessionDeps) {
  const { clock, random, lifetimeMs = LIFETIME_MS } = deps;
  const key = deriveKey(deps.secret, 'session-token');

  /**
   * `client` is the User-Agent of the request, `creatorId` the session whose ticket begins this one. Do not call it in a
   * transaction: signing would hold the database's connection.
   */
  async function sign(
    kind: SessionKind,
    subjectId: string,
    client: string | null,
    creatorId: string | null = null,
  ): Promise<SignedSession> {
    const nowMs = clock.now();
    const sessionId = random.uuid();
    const expiresAtMs = nowMs + lifetimeMs;
    const claims = {
      sub: subjectId,
      jti: sessionId,
      aud: kind,
      iat: Math.floor(nowMs / 1000),
      exp: Math.floor(expiresAtMs / 1000),
    } satisfies z.input<typeof Claims>;
    const token = await new CompactSign(new TextEncoder().encode(JSON.stringify(claims)))
      .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
      .sign(key);
    const row = {
      id: sessionId,
      kind,
      subject_id: subjectId,
      created_at: nowMs,
      expires_at: expiresAtMs,
      revoked_at: null,
      client: client?.slice(0, MAX_CLIENT_CHARS) ?? null,
      creator_session_id: creatorId,
    };
    return { token, sessionId, expiresAtMs, store: (db) => insertSession(db, row) };
  }

  return {
    sign,

    /** Signs and stores a session. Like `sign`, it must not be called in a transaction. */
    async issue(
      db: Db,
      kind: SessionKind,
      subjectId: string,
      client: string | null = null,
    ): Promise<SignedSession> {
      const session = await sign(kind, subjectId, client);
      await session.store(db);
      return session;
    },

    async check(db: Db, kind: SessionKind, token: string): Promise<SessionCheck> {
      const claims = await claimsOf(token, key);
      if (claims === null || claims.aud !== kind) return { state: 'invalid' };
      if (claims.exp * 1000 <= clock.now()) return { state: 'expired' };
      const session = await findSession(db, claims.jti);
      const isLive =
        session !== undefined &&
        session.kind === kind &&
        session.subject_id === claims.sub &&
        session.revoked_at === null;
      if (!isLive) return { state: 'invalid' };
      return { state: 'valid', subjectId: claims.sub, sessionId: claims.jti };
    },

    /** Returns the ids whose sessions are neither revoked nor expired. */
    listLive: (db: Db, ids: readonly string[]) => listLiveSessionIds(db, ids, clock.now()),

    /** Returns a page of the subject's valid sessions, newest first, and the number of all. */
    listOf: (
      db: Db,
      kind: SessionKind,
      subjectId: string,
      page: { offset: number; limit: number },
    ) => listSessions(db, { kind, subject_id: subjectId }, { ...page, nowMs: clock.now() }),

    /**
     * Ends a session of the subject, with the sessions that its tickets began. Returns false if the subject has no such
     * valid session.
     */
    revoke: (db: Database, kind: SessionKind, subjectId: string, sessionId: string) =>
      db.transaction().execute(async (tx) => {
        // A concurrent exchange of a ticket stores its session under the same lock.
        await lockRow(tx, SUBJECTS[kind], subjectId);
        const session = { id: sessionId, nowMs: clock.now() };
        return revokeSession(tx, { kind, subject_id: subjectId }, session);
      }),

    /** Ends every session of a subject except `exceptId`, for example after a change of password. */
    async revokeAll(db: Db, kind: SessionKind, subjectId: string, exceptId: string | null) {
      await revokeSessions(db, { kind, subject_id: subjectId }, clock.now(), exceptId);
    },

    sweep: (tx: Db) => deleteExpiredSessions(tx, clock.now()),
  };
}

/** Returns null if the token is not signed with this key or has invalid claims. Does not check the expiry. */
async function claimsOf(token: string, key: Uint8Array): Promise<z.output<typeof Claims> | null> {
  if (token.length > MAX_TOKEN_CHARS) return null;
  try {
    const { payload } = await compactVerify(token, key, { algorithms: [ALGORITHM] });
    return Claims.parse(JSON.parse(new TextDecoder().decode(payload)));
  } catch {
    return null;
  }
}
