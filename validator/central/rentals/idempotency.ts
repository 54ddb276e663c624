/**
 * Requests that run once per key (marketplace reference 1.1): one transaction claims the key, a second one
 * has the effects and stores the answer, so that no crash can separate the two.
 */
import type { Clock } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import type { Database, Db } from '../db/tables.ts';
import {
  type ClaimScope,
  dropClaim,
  dropExpired,
  dropOfOtherBoots,
  findClaim,
  finishClaim,
  insertClaim,
} from './idempotency.store.ts';

/** A key is new again exactly this long after its first use. */
export const WINDOW_MS = 86_400_000;
const RETRY_AFTER_SECONDS = '1';

export type Answer = { status: number; body: string };
export type Outcome = Answer & { replayed: boolean };

export type OnceRequest = {
  accountId: string;
  route: string;
  /** Null: nothing is deduplicated. */
  key: string | null;
  fingerprint: string;
  /** Runs in one transaction; awaits nothing but queries on `tx`. */
  effects(tx: Db): Promise<Answer>;
  /** The answer for a refusal, in its final bytes. */
  refusal(error: ApiError): Answer;
};

/** `bootId` tells this process's claims from those of dead ones. */
export function createIdempotency(deps: { db: Database; clock: Clock; bootId: string }) {
  const { db, clock, bootId } = deps;
  let latestMs = 0;

  /** Never runs backwards: a clock that does would bring expired keys back. */
  function nowMs(): number {
    latestMs = Math.max(latestMs, clock.now());
    return latestMs;
  }

  /** Null when the key is now ours, else the answer stored under it. */
  async function claim(scope: ClaimScope, fingerprint: string): Promise<Answer | null> {
    const atMs = nowMs();
    return db.transaction().execute(async (tx) => {
      await dropExpired(tx, atMs - WINDOW_MS, scope);
      const fresh = {
        ...scope,
        fingerprint,
        state: 'running' as const,
        boot_id: bootId,
        status: null,
        body: null,
        created_at: atMs,
      };
      if (await insertClaim(tx, fresh)) return null;
      const present = await findClaim(tx, scope);
      if (present === undefined) throw new Error('a claim is neither absent nor present');
      if (present.fingerprint !== fingerprint) {
        throw new ApiError(
          'idempotency_key_reused',
          'This Idempotency-Key was used for another request within 24 hours',
        );
      }
      if (present.state === 'running' || present.status === null || present.body === null) {
        throw new ApiError(
          'idempotency_in_progress',
          'The first request with this Idempotency-Key is still running',
          { headers: { 'Retry-After': RETRY_AFTER_SECONDS } },
        );
      }
      return { status: present.status, body: present.body };
    });
  }

  /** Effects and stored answer together; a claim that is no longer ours undoes both. */
  async function settle(scope: ClaimScope, effects: (tx: Db) => Promise<Answer>): Promise<Answer> {
    return db.transaction().execute(async (tx) => {
      const answer = await effects(tx);
      if (!(await finishClaim(tx, scope, bootId, answer))) {
        throw new ApiError('conflict', 'The claim on this Idempotency-Key was lost');
      }
      return answer;
    });
  }

  return {
    /** Throws what ran without a key throws; with one, refusals below 500 come back as answers. */
    async once(request: OnceRequest): Promise<Outcome> {
      const { accountId, route, key, fingerprint, effects } = request;
      if (key === null) {
        return { ...(await db.transaction().execute(effects)), replayed: false };
      }
      const scope = { account_id: accountId, route, key };
      const stored = await claim(scope, fingerprint);
      if (stored !== null) return { ...stored, replayed: true };
      try {
        return { ...(await settle(scope, effects)), replayed: false };
      } catch (error) {
        if (!(error instanceof ApiError) || error.status >= 500) {
          await dropClaim(db, scope, bootId);
          throw error;
        }
        const answer = request.refusal(error);
        await finishClaim(db, scope, bootId, answer);
        return { ...answer, replayed: false };
      }
    },

    /** At start, before requests are taken: no effect can stand behind a claim of a dead process. */
    dropStale: () => dropOfOtherBoots(db, bootId),

    /** Removes what the window has passed. */
    sweep: () => dropExpired(db, nowMs() - WINDOW_MS),
  };
}

export type Idempotency = ReturnType<typeof createIdempotency>;
