/** The queue from which the pod syncs of all processes on one database claim executors that are due. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Database, Db } from '../../platform/database/tables.ts';
import type { Processes } from '../../platform/processes.ts';
import {
  type Claim,
  claimEntries,
  earliestDueMs,
  listDueEntries,
  listDueLanes,
  lockedAmong,
  pullInEntries,
  type Release,
  releaseEntries,
  wakeEntries,
} from './sync-queue.store.ts';

export { enterQueue } from './sync-queue.store.ts';

/** Share of the claims for executors that did not answer the last time, while others are due. */
const FAILING_SHARE = 0.125;

/**
 * Maximum number of claims in total, and of claims for executors that did not answer the last time. `reserved` claims of
 * the total are left for executors that are woken later.
 */
export type ClaimLimits = { total: number; unreachable: number; reserved: number };

export type Exchange = {
  /** Claims of this process that have ended. */
  releases: readonly Release[];
  /** Executors that are due now. */
  wakes: readonly string[];
  limits: ClaimLimits;
  /** Executors that this process claimed and did not release before this exchange. */
  running: readonly string[];
  /** Executors that are due within this time count as due. */
  aheadMs: number;
  /** Stores what else the passes have found, in the same transaction. */
  store(tx: Db): Promise<void>;
};

/** Wakes and releases that were not stored, because another transaction had locked their rows. */
export type Exchanged = { claims: Claim[]; wakes: readonly string[]; releases: readonly Release[] };

export type SyncQueue = ReturnType<typeof createSyncQueue>;

/**
 * Creates the queue. Each executor has at most one claim at a time. The claims of a process without a heartbeat are
 * free again.
 */
export function createSyncQueue(deps: {
  db: Database;
  clock: Clock;
  processes: Pick<Processes, 'bootId' | 'others'>;
}) {
  const { db, clock, processes } = deps;
  const { bootId } = processes;

  /**
   * Woken executors come first. Executors that do not answer come last, because their calls take long, but a share of the
   * claims is theirs even if all others are due.
   */
  async function listDue(tx: Db, { limits, running, aheadMs }: Exchange): Promise<Claim[]> {
    const untilMs = clock.now() + aheadMs;
    const lanes = await listDueLanes(tx, untilMs);
    if (lanes.length === 0) return [];
    const others = await processes.others(tx);
    const taken = [...running];
    async function take(failing: boolean, woken: 0 | 1, limit: number): Promise<Claim[]> {
      if (!lanes.some((lane) => lane.failing === failing && lane.woken === woken)) return [];
      const due = { untilMs, others, running: taken, failing, woken, limit };
      const claims = await listDueEntries(tx, due);
      taken.push(...idsOf(claims));
      return claims;
    }
    async function takeFailing(limit: number): Promise<Claim[]> {
      const first = await take(true, 1, limit);
      return [...first, ...(await take(true, 0, limit - first.length))];
    }
    const woken = await take(false, 1, limits.total);
    const afterWoken = Math.max(0, limits.total - woken.length - limits.reserved);
    const share = Math.min(limits.unreachable, Math.ceil(afterWoken * FAILING_SHARE));
    const failing = await takeFailing(share);
    const answering = await take(false, 0, afterWoken - failing.length);
    const left = afterWoken - failing.length - answering.length;
    const more = await takeFailing(Math.min(left, limits.unreachable - failing.length));
    return [...woken, ...answering, ...failing, ...more];
  }

  return {
    /** Stores wakes and releases, and claims executors that are due, in one transaction that waits for no other. */
    async exchange(exchange: Exchange): Promise<Exchanged> {
      const { wakes, releases, limits } = exchange;
      if (releases.length === 0 && wakes.length === 0 && limits.total <= 0) return NOTHING;
      return db.transaction().execute(async (tx) => {
        const nowMs = clock.now();
        await exchange.store(tx);
        const locked = await lockedAmong(tx, [...wakes, ...idsOf(releases)]);
        const isFree = (id: string) => !locked.has(id);
        const done = releases.filter(({ executorId }) => isFree(executorId));
        await wakeEntries(tx, wakes.filter(isFree), nowMs);
        await releaseEntries(tx, done, { bootId, nowMs });
        const released = new Set(idsOf(done));
        const running = exchange.running.filter((id) => !released.has(id));
        const claims = limits.total <= 0 ? [] : await listDue(tx, { ...exchange, running });
        await claimEntries(tx, idsOf(claims), bootId);
        return {
          claims,
          wakes: wakes.filter((id) => locked.has(id)),
          releases: releases.filter(({ executorId }) => locked.has(executorId)),
        };
      });
    },

    /** Milliseconds for which the oldest due executor has waited to be claimed; 0 if none is due. */
    async delayMs(): Promise<number> {
      const nowMs = clock.now();
      return Math.max(0, nowMs - ((await earliestDueMs(db)) ?? nowMs));
    },

    /** Returns the time at which the next executor is due that is not claimed; null if there is none. */
    nextDueMs: () => earliestDueMs(db),

    /** Makes executors due that are not due within `longestMs`, because the clock was set back. */
    pullIn: (longestMs: number) => pullInEntries(db, clock.now() + longestMs, clock.now()),
  };
}

const NOTHING: Exchanged = { claims: [], wakes: [], releases: [] };

const idsOf = (claims: readonly Claim[]) => claims.map(({ executorId }) => executorId);
