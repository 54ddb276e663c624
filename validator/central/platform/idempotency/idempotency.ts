/**
 * Requests that run once per Idempotency-Key. One transaction claims the key. A second transaction performs the effects
 * and stores the response, so that a crash cannot separate effects and response.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import type { Database, Db } from '../database/tables.ts';
import { moneyTransaction } from '../database/transactions.ts';
import {
  type Claim,
  type ClaimScope,
  dropClaim,
  dropExpired,
  findClaim,
  finishClaim,
  insertClaim,
} from './idempotency.store.ts';

/** Time after its first use at which a key expires. Then the key can be used for another request. */
export const WINDOW_MS = 86_400_000;
const RETRY_AFTER_SECONDS = '1';
/**
 * Maximum number of attempts to claim a key. An attempt fails if another process deletes its claim between the insert
 * and the query of this process.
 */
const MAX_CLAIM_ATTEMPTS = 3;

export type Answer = { status: number; body: string };
export type Outcome = Answer & { replayed: boolean };

export type OnceRequest = {
  accountId: string;
  route: string;
  /** If null, the request runs without a claim. */
  key: string | null;
  fingerprint: string;
  /** Performs the effects in one transaction. May await only queries on `tx`. */
  effects(tx: Db): Promise<Answer>;
  /** Returns the response for an error, in its final bytes. */
  refusal(error: ApiError): Answer;
  /** Encrypts the stored response in addition to the encryption of the column (database/sealed-columns.ts). */
  atRest?: AtRest;
};

/** Encrypts the bodies of stored responses with a key of the caller. */
export type AtRest = { seal(body: string): string; open(stored: string): string };

const UNSEALED: AtRest = { seal: (body) => body, open: (stored) => stored };

/** Id of the present process, and a function that checks whether another process is alive. */
export type ClaimHolders = { bootId: string; isAlive(db: Db, bootId: string): Promise<boolean> };

export type IdempotencyDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  processes: ClaimHolders;
};

export function createIdempotency({ db, clock, random, processes }: IdempotencyDeps) {
  const { bootId } = processes;
  let latestMs = 0;
  /** Number of present requests of this process by key. */
  const uses = new Map<string, number>();

  /** Returns a time that never goes backwards. Otherwise expired keys could become valid again. */
  function nowMs(): number {
    latestMs = Math.max(latestMs, clock.now());
    return latestMs;
  }

  /** Returns null if this process has now claimed the key; otherwise the existing claim. */
  async function insertOrFind(tx: Db, fresh: Claim): Promise<Claim | null> {
    for (let attempt = 0; attempt < MAX_CLAIM_ATTEMPTS; attempt += 1) {
      if (await insertClaim(tx, fresh)) return null;
      const present = await findClaim(tx, fresh);
      if (present !== undefined && !(await isAbandoned(tx, present))) return present;
      // A running claim has no effects, because effects are committed together with the response.
      if (present !== undefined) await dropClaim(tx, fresh, present.boot_id);
    }
    throw inProgress();
  }

  /** A claim of this process is abandoned if its request has ended and could not delete it, as on a full pool. */
  async function isAbandoned(tx: Db, claim: Claim): Promise<boolean> {
    if (claim.state !== 'running') return false;
    if (claim.boot_id === bootId) return uses.get(nameOf(claim)) === 1;
    return !(await processes.isAlive(tx, claim.boot_id));
  }

  /** Counts the request while `work` runs. */
  async function counted<T>(scope: ClaimScope, work: () => Promise<T>): Promise<T> {
    const name = nameOf(scope);
    uses.set(name, (uses.get(name) ?? 0) + 1);
    try {
      return await work();
    } finally {
      const left = (uses.get(name) ?? 0) - 1;
      if (left > 0) uses.set(name, left);
      else uses.delete(name);
    }
  }

  /** Returns null if this process has now claimed the key; otherwise the stored response. */
  async function claim(scope: ClaimScope, fingerprint: string): Promise<Answer | null> {
    const atMs = nowMs();
    return db.transaction().execute(async (tx) => {
      await dropExpired(tx, atMs - WINDOW_MS, scope);
      const present = await insertOrFind(tx, {
        ...scope,
        fingerprint,
        state: 'running',
        boot_id: bootId,
        status: null,
        body: null,
        created_at: atMs,
      });
      if (present === null) return null;
      if (present.fingerprint !== fingerprint) {
        throw new ApiError(
          'idempotency_key_reused',
          'This Idempotency-Key was used for another request within 24 hours',
        );
      }
      const { state, status, body } = present;
      if (state === 'running' || status === null || body === null) throw inProgress();
      return { status, body };
    });
  }

  /** Commits the effects and the response together. Rolls both back if this process has lost the claim. */
  async function settle(
    scope: ClaimScope,
    effects: (tx: Db) => Promise<Answer>,
    { seal }: AtRest,
  ): Promise<Answer> {
    return moneyTransaction({ db, clock, random }, async (tx) => {
      const answer = await effects(tx);
      const stored = { ...answer, body: seal(answer.body) };
      if (!(await finishClaim(tx, scope, bootId, stored))) {
        throw new ApiError('conflict', 'The claim on this Idempotency-Key was lost');
      }
      return answer;
    });
  }

  /** Returns the stored response, or runs the effects under a new claim. */
  async function onceClaimed(scope: ClaimScope, request: OnceRequest): Promise<Outcome> {
    const { fingerprint, effects, atRest = UNSEALED } = request;
    const stored = await claim(scope, fingerprint);
    if (stored !== null) return { ...stored, body: atRest.open(stored.body), replayed: true };
    try {
      return { ...(await settle(scope, effects, atRest)), replayed: false };
    } catch (error) {
      if (!(error instanceof ApiError) || error.status >= 500) {
        await dropClaim(db, scope, bootId);
        throw error;
      }
      const answer = request.refusal(error);
      await finishClaim(db, scope, bootId, { ...answer, body: atRest.seal(answer.body) });
      return { ...answer, replayed: false };
    }
  }

  return {
    /**
     * Runs `effects` once per key. Without a key, throws the errors of `effects`. With a key, returns errors below 500
     * as responses.
     */
    async once(request: OnceRequest): Promise<Outcome> {
      const { accountId, route, key, effects } = request;
      if (key === null) {
        return { ...(await moneyTransaction({ db, clock, random }, effects)), replayed: false };
      }
      const scope = { account_id: accountId, route, key };
      return counted(scope, () => onceClaimed(scope, request));
    },

    /** Removes expired claims. */
    sweep: (tx: Db) => dropExpired(tx, nowMs() - WINDOW_MS),
  };
}

function nameOf({ account_id, route, key }: ClaimScope): string {
  return JSON.stringify([account_id, route, key]);
}

function inProgress(): ApiError {
  return new ApiError(
    'idempotency_in_progress',
    'The first request with this Idempotency-Key is still running',
    { headers: { 'Retry-After': RETRY_AFTER_SECONDS } },
  );
}

export type Idempotency = ReturnType<typeof createIdempotency>;

export const WELL_FORMED = /^[A-Za-z0-9_.:-]{1,255}$/;

/** Returns the key in the header; null if there is no header. Throws 422 if the header is empty, quoted or repeated. */
export function idempotencyKeyOf(header: string | string[] | undefined): string | null {
  if (header === undefined) return null;
  if (typeof header === 'string' && WELL_FORMED.test(header)) return header;
  throw new ApiError('idempotency_key_invalid', 'The Idempotency-Key header is malformed');
}

/**
 * Returns a fingerprint of the route, the ids in the path, and the body. It does not depend on the order of members, on
 * white space, or on null members.
 */
export function fingerprintOf(route: string, ids: readonly string[], body: unknown): string {
  return sha256Hex(JSON.stringify([route, ids, canonical(body)]));
}

/** Sorts members and removes null members. The order of list elements is significant. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value)
    .filter(([, member]) => member !== null && member !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => [name, canonical(member)]);
  // Uses pairs, because an object would reorder integer-like names and lose __proto__.
  return { members };
}
