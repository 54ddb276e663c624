/** Announces and cancels the notice period of a node. */
import { ApiError } from '#shared/runtime/errors.ts';
import type { Database, Db, Notice } from '../../platform/database/tables.ts';
import { lockRow, moneyTransaction } from '../../platform/database/transactions.ts';
import type { Actor, PortalIdentity } from '../../platform/identity.ts';
import { clearDue, setDue } from '../../platform/schedule/due.ts';
import { requireOwnNode, updateExecutor } from '../executors/executor.service.ts';
import type { NoticePeriod } from '../executors/notice-period.ts';
import { noticeEndMs, type ParsedNotice, parseNotice, type SetNotice } from './notice.schemas.ts';
import {
  countSince,
  findActive,
  findMaintenance,
  insertNotice,
  listMaintenanceStarts,
  moveNotice,
} from './notice.store.ts';
import { type NotifyDeps, notifyRenters } from './notify-renters.ts';

/** Limit of notices per node, because every notice and every cancellation sends a mail to each renter on the node. */
const MAX_PER_NODE_AND_DAY = 10;
const DAY_MS = 86_400_000;
/** Time before a permanent removal at which the last backups of the node's pods begin. */
export const LAST_BACKUP_LEAD_MS = 3_600_000;

export type NoticesDeps = NotifyDeps & { db: Database };

export type NoticeCaller = { provider: PortalIdentity; actor: Actor };

export type Notices = ReturnType<typeof createNotices>;

export function createNotices(deps: NoticesDeps) {
  const { db, clock, random } = deps;

  /** Locks the caller's node and runs `change`. */
  async function withOwnNode(
    { provider }: NoticeCaller,
    executorId: string,
    change: (tx: Db) => Promise<Notice>,
  ): Promise<NoticePeriod> {
    const notice = await moneyTransaction({ db, clock, random }, async (tx) => {
      await lockRow(tx, 'executors', executorId);
      await requireOwnNode(tx, provider, executorId);
      return change(tx);
    });
    deps.wakeMail();
    return toNoticePeriod(notice);
  }

  async function insert(tx: Db, executorId: string, parsed: ParsedNotice): Promise<Notice> {
    const nowMs = clock.now();
    const notice: Notice = {
      id: random.uuid(),
      executor_id: executorId,
      start_at: parsed.startAtMs,
      start_text: parsed.startText,
      minutes: parsed.minutes,
      permanent: parsed.minutes === null ? 1 : 0,
      reason: parsed.reason,
      state: 'open',
      created_at: nowMs,
      updated_at: nowMs,
    };
    await insertNotice(tx, notice);
    await updateExecutor(tx, executorId, { notice_json: JSON.stringify(toNoticePeriod(notice)) });
    await setDue(tx, 'notice-start', notice.id, notice.start_at);
    if (notice.permanent === 1) {
      await setDue(tx, 'notice-backup', notice.id, notice.start_at - LAST_BACKUP_LEAD_MS);
    }
    return notice;
  }

  return {
    /** Throws 400 if the body breaks a rule, and 409 while the node has an open or started notice. */
    set: (caller: NoticeCaller, executorId: string, body: SetNotice) =>
      withOwnNode(caller, executorId, async (tx) => {
        const nowMs = clock.now();
        const parsed = parseNotice(body, nowMs);
        const active = await findActive(tx, executorId);
        if (active !== undefined) {
          throw new ApiError(
            'conflict',
            `The node already has a notice from ${active.start_text}`,
            {
              hint: 'Cancel the existing notice with DELETE on the same path before it starts.',
            },
          );
        }
        if ((await countSince(tx, executorId, nowMs - DAY_MS)) >= MAX_PER_NODE_AND_DAY) {
          throw new ApiError(
            'bad_request',
            `At most ${MAX_PER_NODE_AND_DAY} notices of a node can be announced within 24 hours`,
            { hint: 'Every notice sends a mail to the renters. Try again later.' },
          );
        }
        const notice = await insert(tx, executorId, parsed);
        await notifyRenters(tx, deps, notice, { step: 'set', actor: caller.actor });
        return notice;
      }),

    /** Throws 400 if the node has no notice or the notice has started. */
    cancel: (caller: NoticeCaller, executorId: string) =>
      withOwnNode(caller, executorId, async (tx) => {
        const nowMs = clock.now();
        const notice = await findActive(tx, executorId);
        if (notice === undefined) {
          throw new ApiError('bad_request', 'No notice period is set for this node');
        }
        // Compares with the announced time, because the due handler may not have run yet.
        const isEarly = nowMs < notice.start_at;
        if (!isEarly || !(await moveNotice(tx, notice.id, 'cancelled', nowMs))) {
          throw new ApiError('bad_request', `The notice period began at ${notice.start_text}`, {
            hint: 'A notice can be cancelled before it starts.',
          });
        }
        await updateExecutor(tx, executorId, { notice_json: null });
        await notifyRenters(tx, deps, notice, { step: 'cancelled', actor: caller.actor });
        await clearDue(tx, 'notice-start', notice.id);
        await clearDue(tx, 'notice-backup', notice.id);
        return notice;
      }),
  };
}

function toNoticePeriod(notice: Notice): NoticePeriod {
  return {
    starting_at: notice.start_text,
    period_in_minute: notice.minutes,
    permanent_removal: notice.permanent === 1,
    reason: notice.reason,
  };
}

/** Time range; `toMs` is exclusive. */
export type Window = { fromMs: number; toMs: number };

/** Returns the announced maintenance that contains `atMs`, in any state except cancelled; null if there is none. */
export async function maintenanceAt(
  db: Db,
  executorId: string,
  atMs: number,
): Promise<Window | null> {
  const notice = await findMaintenance(db, executorId, atMs);
  if (notice === undefined) return null;
  const toMs = noticeEndMs(notice);
  return atMs < toMs ? { fromMs: notice.start_at, toMs } : null;
}

/** Returns the start of each node's latest maintenance that has begun within the last day, by node. */
export const maintenanceStarts = (db: Db, nowMs: number): Promise<Map<string, number>> =>
  listMaintenanceStarts(db, { sinceMs: nowMs - DAY_MS, atMs: nowMs });
