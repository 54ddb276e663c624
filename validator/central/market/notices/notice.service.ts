/** Announcing and taking back a notice period of a node (marketplace reference 1.7). */
import { ApiError } from '#shared/runtime/errors.ts';
import type { Database, Db, Notice } from '../../platform/database/tables.ts';
import { lockRow, moneyTransaction } from '../../platform/database/transactions.ts';
import type { Actor, PortalIdentity } from '../../platform/identity.ts';
import { clearDue, setDue } from '../../platform/schedule/due.ts';
import { requireOwnNode } from '../../providers/node.service.ts';
import { updateExecutor } from '../executors/executor.service.ts';
import type { NoticePeriod } from '../executors/notice-period.ts';
import { type NoticeWish, noticeWish } from './notice.rules.ts';
import type { SetNotice } from './notice.schemas.ts';
import { countSince, findStanding, insertNotice, moveNotice } from './notice.store.ts';
import { type TellDeps, tellRenters } from './notice.tell.ts';

/** Each one is a mail to every renter on the node, and taking it back another. */
const MAX_PER_NODE_AND_DAY = 10;
const DAY_MS = 86_400_000;
/** How long before a node goes the pods on it are backed up a last time. */
export const LAST_BACKUP_LEAD_MS = 3_600_000;

export type NoticesDeps = TellDeps & { db: Database };

export type NoticeCaller = { provider: PortalIdentity; actor: Actor };

export type Notices = ReturnType<typeof createNotices>;

export function createNotices(deps: NoticesDeps) {
  const { db, clock, random } = deps;

  /** Runs `change` on the caller's node, which nobody rents, announces or removes meanwhile. */
  async function onOwn(
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
    return shown(notice);
  }

  async function insert(tx: Db, executorId: string, wish: NoticeWish): Promise<Notice> {
    const nowMs = clock.now();
    const notice: Notice = {
      id: random.uuid(),
      executor_id: executorId,
      start_at: wish.startAtMs,
      start_text: wish.startText,
      minutes: wish.minutes,
      permanent: wish.minutes === null ? 1 : 0,
      reason: wish.reason,
      state: 'open',
      created_at: nowMs,
      updated_at: nowMs,
    };
    await insertNotice(tx, notice);
    await updateExecutor(tx, executorId, { notice_json: JSON.stringify(shown(notice)) });
    await setDue(tx, 'notice-start', notice.id, notice.start_at);
    if (notice.permanent === 1) {
      await setDue(tx, 'notice-backup', notice.id, notice.start_at - LAST_BACKUP_LEAD_MS);
    }
    return notice;
  }

  return {
    /** Throws 400 for what makes no notice, 409 while the node has one. */
    set: (caller: NoticeCaller, executorId: string, body: SetNotice) =>
      onOwn(caller, executorId, async (tx) => {
        const nowMs = clock.now();
        const wish = noticeWish(body, nowMs);
        const standing = await findStanding(tx, executorId);
        if (standing !== undefined) {
          throw new ApiError('conflict', `A notice from ${standing.start_text} on stands already`, {
            hint: 'Cancel it first with DELETE on the same path, before it starts.',
          });
        }
        if ((await countSince(tx, executorId, nowMs - DAY_MS)) >= MAX_PER_NODE_AND_DAY) {
          throw new ApiError(
            'bad_request',
            `At most ${MAX_PER_NODE_AND_DAY} notices of a node can be announced within 24 hours`,
            { hint: 'Renters get a mail for each; try again later.' },
          );
        }
        const notice = await insert(tx, executorId, wish);
        await tellRenters(tx, deps, notice, { step: 'set', actor: caller.actor });
        return notice;
      }),

    /** Throws 400 when there is none, and from its start on. */
    cancel: (caller: NoticeCaller, executorId: string) =>
      onOwn(caller, executorId, async (tx) => {
        const nowMs = clock.now();
        const notice = await findStanding(tx, executorId);
        if (notice === undefined) {
          throw new ApiError('bad_request', 'No notice period is set for this node');
        }
        // Its time counts, not whether somebody has noted it yet.
        const isEarly = nowMs < notice.start_at;
        if (!isEarly || !(await moveNotice(tx, notice.id, 'cancelled', nowMs))) {
          throw new ApiError('bad_request', `The notice period began at ${notice.start_text}`, {
            hint: 'A notice can be cancelled before it starts.',
          });
        }
        await updateExecutor(tx, executorId, { notice_json: null });
        await tellRenters(tx, deps, notice, { step: 'cancelled', actor: caller.actor });
        await clearDue(tx, 'notice-start', notice.id);
        await clearDue(tx, 'notice-backup', notice.id);
        return notice;
      }),
  };
}

function shown(notice: Notice): NoticePeriod {
  return {
    starting_at: notice.start_text,
    period_in_minute: notice.minutes,
    permanent_removal: notice.permanent === 1,
    reason: notice.reason,
  };
}
