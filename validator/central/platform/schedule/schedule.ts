/**
 * Has things happen at their times, each once, over restarts and over several processes: the row goes in the very
 * transaction that does what it says.
 */

import { type Clock, createEventLoopYield } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { createHeartbeat } from '#shared/runtime/liveness.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Notifier } from '../database/notifier.ts';
import type { Database, Db, DueWork } from '../database/tables.ts';
import { moneyTransaction } from '../database/transactions.ts';
import type { DueKind } from './due.ts';
import { createPace } from './pace.ts';
import {
  type DueKey,
  earliestLook,
  isOurs,
  listDue,
  postpone,
  putDue,
  takeOff,
} from './schedule.store.ts';

/** Done in one turn of the loop; the next follows at once. */
const MAX_PER_TURN = 500;
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 300_000;
const MAX_ERROR_CHARS = 300;

export type Due = {
  subject: string;
  /** The instant that it counts from. */
  dueAtMs: number;
  /** Now, which may be much later. */
  nowMs: number;
};

export type DueOutcome = {
  /** It is to happen again then. */
  againAtMs?: number;
  /** Runs once the transaction is committed; lost by a crash, so for hints only. */
  after?(): void;
};

/**
 * Does one kind. Nothing but queries on `tx`: what is to reach the world is stored as rows. A rejection undoes
 * everything, and it is tried again later. It may set or clear any row, its own included.
 */
export type DueHandler = {
  /**
   * Takes the locks that `run` is going to need, in the order of `lockRow`. Not `run` itself: who holds one of them
   * may be just setting this row anew.
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
  /** Kinds without a handler wait for a process that has one. */
  handlers: DueHandlers;
  /** Puts on it what is to be there always, before the first look of the periodic work. */
  begin?(nowMs: number): Promise<void>;
};

export type Schedule = ReturnType<typeof createSchedule>;

export function createSchedule(deps: ScheduleDeps) {
  const { db, clock, random, log, notifier, handlers, begin } = deps;
  const byKind = new Map<string, DueHandler>(Object.entries(handlers));
  const kinds = [...byKind.keys()];
  const looks = createHeartbeat(clock);
  const pace = createPace(clock);
  let loop: Loop | null = null;
  let hasBegun = false;

  /** False when another process is at work on it. */
  async function take(row: DueWork, handler: DueHandler, nowMs: number): Promise<boolean> {
    let outcome: DueOutcome | undefined;
    const taken = await moneyTransaction({ db, clock, random }, async (tx) => {
      outcome = undefined;
      if (!(await isOurs(tx, row))) return false;
      await handler.lock?.(tx, row.subject);
      // Gone or set anew meanwhile: the next look sees what has become of it.
      if (!(await takeOff(tx, row))) return true;
      outcome = await handler.run(tx, { subject: row.subject, dueAtMs: row.due_at, nowMs });
      if (outcome?.againAtMs === undefined) return true;
      await putDue(tx, { kind: row.kind, subject: row.subject, dueAtMs: outcome.againAtMs });
      return true;
    });
    outcome?.after?.();
    return taken;
  }

  /** So that it holds up nothing that is due later. */
  async function putOff(row: DueWork, error: unknown): Promise<void> {
    const pauseMs = Math.min(FIRST_RETRY_MS * 2 ** row.attempts, LAST_RETRY_MS);
    const { kind, subject, attempts } = row;
    log.error({ kind, subject, attempts: attempts + 1, err: error }, 'what was due failed');
    const text = messageOf(error).slice(0, MAX_ERROR_CHARS);
    await postpone(db, row, { lookAtMs: clock.now() + pauseMs, error: text });
  }

  /** The earliest row that is due and not among those passed over, which are few: one per other process. */
  async function next(nowMs: number, passedOver: readonly DueKey[]): Promise<DueWork | undefined> {
    const rows = await listDue(db, { kinds, nowMs, limit: passedOver.length + 1 });
    const isPassedOver = (row: DueKey) =>
      passedOver.some(({ kind, subject }) => kind === row.kind && subject === row.subject);
    return rows.find((row) => !isPassedOver(row));
  }

  /** Does what is due, in order, one after the other: what one sets may be due before the next. True when more may be. */
  async function turn(signal?: AbortSignal): Promise<boolean> {
    const breathe = createEventLoopYield(clock);
    const passedOver: DueKey[] = [];
    for (let done = 0; done < MAX_PER_TURN; done += 1) {
      if (signal?.aborted) return false;
      const nowMs = clock.now();
      const row = await next(nowMs, passedOver);
      const handler = row && byKind.get(row.kind);
      if (row === undefined || handler === undefined) return false;
      try {
        if (!(await take(row, handler, nowMs))) passedOver.push(row);
      } catch (error) {
        await putOff(row, error);
      }
      await breathe();
    }
    return true;
  }

  async function look(signal: AbortSignal): Promise<void> {
    pace.begin();
    if (!hasBegun) await begin?.(clock.now());
    hasBegun = true;
    const more = kinds.length > 0 && (await turn(signal));
    pace.end(more ? clock.now() : kinds.length > 0 ? await earliestLook(db, kinds) : null);
  }

  notifier.onNotify('due', (dueAtMs) => {
    if (pace.hear(dueAtMs)) loop?.wake();
  });

  return {
    /** Does everything that is due: tests call it instead of `start`. */
    async runDue(): Promise<void> {
      if (kinds.length > 0) while (await turn());
    },

    /** Milliseconds since the last look of the periodic work ended. */
    sinceLookMs: looks.ageMs,

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: pace.pauseMs,
        run: (signal) => looks.beatAfter(() => look(signal)),
        onError: (error) => log.error({ err: error }, 'the schedule could not be read'),
      });
    },

    async stop(): Promise<void> {
      await loop?.stop();
      loop = null;
    },
  };
}
