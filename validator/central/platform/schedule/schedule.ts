/**
 * Runs work at its due time, exactly once across restarts and processes, because the transaction that does the work
 * also removes its row.
 */

import { type Clock, createEventLoopYield } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { ClockTrust } from '#shared/runtime/guarded-clock.ts';
import { createHeartbeat } from '#shared/runtime/liveness.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Notifier } from '../database/notifier.ts';
import type { Database, Db, DueWork } from '../database/tables.ts';
import { moneyTransaction } from '../database/transactions.ts';
import type { DueKind } from './due.ts';
import { createPace, LOOK_AT_LEAST_EVERY_MS } from './pace.ts';
import {
  type DueKey,
  earliestDue,
  listDue,
  postpone,
  putDue,
  removeRead,
  tryLock,
} from './schedule.store.ts';

/** Maximum number of rows per poll. If there are more due rows, the next poll follows immediately. */
const MAX_PER_POLL = 500;
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 300_000;
const MAX_ERROR_CHARS = 300;

export type Due = {
  subject: string;
  /** Time for which the work was scheduled. */
  dueAtMs: number;
  /** Present time, which may be much later than the due time. */
  nowMs: number;
};

export type DueOutcome = {
  /** Time for which the same work is scheduled again; absent if it is not scheduled again. */
  againAtMs?: number;
  /** Called after the commit. A crash can prevent the call, so use it only for effects that may be missed. */
  after?(): void;
};

/**
 * Handler of one kind of work. It may only query `tx`; messages to other systems are stored as rows. If it rejects,
 * everything is rolled back, and the work is retried later. It may set or clear any row, including its own.
 */
export type DueHandler = {
  /**
   * Takes the locks that `run` needs, in the order that `lockRow` documents. It runs before the row of the work is
   * removed, because a transaction that holds one of these locks may be changing that row.
   */
  lock?(tx: Db, subject: string): Promise<unknown>;
  run(tx: Db, due: Due): Promise<DueOutcome | undefined>;
};

export type DueHandlers = Partial<Record<DueKind, DueHandler>>;

export type ScheduleDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  log: Log;
  notifier: Notifier;
  /** No work runs while the clock is suspect. */
  trust: Pick<ClockTrust, 'isSuspect'>;
  /** Handlers by kind. Work without a handler waits for a process that has a handler for its kind. */
  handlers: DueHandlers;
  /** Shortest value of the longest pause between two polls. */
  pollMs?: number;
  /** Called before the first poll, to schedule work that must always be scheduled. */
  begin?(nowMs: number): Promise<void>;
};

export type Schedule = ReturnType<typeof createSchedule>;

export function createSchedule(deps: ScheduleDeps) {
  const { db, clock, random, log, notifier, trust, handlers, begin } = deps;
  const byKind = new Map<string, DueHandler>(Object.entries(handlers));
  const kinds = [...byKind.keys()];
  const heartbeat = createHeartbeat(clock);
  const pace = createPace(clock, Math.max(LOOK_AT_LEAST_EVERY_MS, deps.pollMs ?? 0));
  let loop: Loop | null = null;
  let hasBegun = false;

  /** Returns false if another process is already doing this work. */
  async function run(row: DueWork, handler: DueHandler, nowMs: number): Promise<boolean> {
    let outcome: DueOutcome | undefined;
    const isDone = await moneyTransaction({ db, clock, random }, async (tx) => {
      outcome = undefined;
      if (!(await tryLock(tx, row))) return false;
      await handler.lock?.(tx, row.subject);
      // The row was removed or changed meanwhile; the next poll reads it again.
      if (!(await removeRead(tx, row))) return true;
      outcome = await handler.run(tx, { subject: row.subject, dueAtMs: row.due_at, nowMs });
      if (outcome?.againAtMs === undefined) return true;
      await putDue(tx, { kind: row.kind, subject: row.subject, dueAtMs: outcome.againAtMs });
      return true;
    });
    outcome?.after?.();
    return isDone;
  }

  /** Postpones failed work, so that work with a later due time can run. */
  async function retryLater(row: DueWork, error: unknown): Promise<void> {
    const pauseMs = Math.min(FIRST_RETRY_MS * 2 ** row.attempts, LAST_RETRY_MS);
    const { kind, subject, attempts } = row;
    log.error({ kind, subject, attempts: attempts + 1, err: error }, 'scheduled work failed');
    const text = messageOf(error).slice(0, MAX_ERROR_CHARS);
    await postpone(db, row, { retryAtMs: clock.now() + pauseMs, error: text });
  }

  /** Returns the earliest due row that is not in `skipped`. `skipped` contains at most one row per other process. */
  async function next(nowMs: number, skipped: readonly DueKey[]): Promise<DueWork | undefined> {
    const rows = await listDue(db, { kinds, nowMs, limit: skipped.length + 1 });
    const isSkipped = (row: DueKey) =>
      skipped.some(({ kind, subject }) => kind === row.kind && subject === row.subject);
    return rows.find((row) => !isSkipped(row));
  }

  /**
   * Runs due work in order, one piece after the other, because work may schedule further work that is due earlier.
   * Returns true if there may be more due work.
   */
  async function runBatch(signal?: AbortSignal): Promise<boolean> {
    const yieldToEventLoop = createEventLoopYield(clock);
    const skipped: DueKey[] = [];
    for (let done = 0; done < MAX_PER_POLL; done += 1) {
      if (signal?.aborted || trust.isSuspect()) return false;
      const nowMs = clock.now();
      const row = await next(nowMs, skipped);
      const handler = row && byKind.get(row.kind);
      if (row === undefined || handler === undefined) return false;
      try {
        if (!(await run(row, handler, nowMs))) skipped.push(row);
      } catch (error) {
        await retryLater(row, error);
      }
      await yieldToEventLoop();
    }
    return true;
  }

  async function poll(signal: AbortSignal): Promise<void> {
    pace.begin();
    if (!hasBegun) await begin?.(clock.now());
    hasBegun = true;
    const more = kinds.length > 0 && (await runBatch(signal));
    const isIdle = kinds.length === 0 || trust.isSuspect();
    pace.end(more ? clock.now() : isIdle ? null : await earliestDue(db, kinds));
  }

  notifier.onNotify('due', (dueAtMs) => {
    if (pace.announce(dueAtMs)) loop?.wake();
  });

  return {
    /** Runs all due work. Called only by tests, which do not call `start`. */
    async runDue(): Promise<void> {
      if (kinds.length > 0) while (await runBatch());
    },

    /** Milliseconds since the end of the last poll. */
    sincePollMs: heartbeat.ageMs,

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: pace.pauseMs,
        run: (signal) => heartbeat.beatAfter(() => poll(signal)),
        onError: (error) => log.error({ err: error }, 'reading the schedule failed'),
      });
    },

    async stop(): Promise<void> {
      await loop?.stop();
      loop = null;
    },
  };
}
