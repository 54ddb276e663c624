/** Starts and ends notice periods. A late run still uses the announced times. */

import type { Db, Notice, Pod } from '../../platform/database/tables.ts';
import { lockRow, lockRows } from '../../platform/database/transactions.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { setDue } from '../../platform/schedule/due.ts';
import type { DueHandlers } from '../../platform/schedule/schedule.ts';
import { retireExecutor, updateExecutor } from '../executors/executor.service.ts';
import { listKeptOn, listUnendedOn } from '../pods/pod.service.ts';
import { deferUntilContact } from '../pods/pod-contact.ts';
import { beginRemoval } from '../pods/pod-removal.ts';
import { hasUnsaved } from '../volumes/volume-attachment.ts';
import { noticeEndMs } from './notice.schemas.ts';
import { findNotice, moveNotice } from './notice.store.ts';
import { type NotifyDeps, notifyRenters } from './notify-renters.ts';

/** Interval of checks whether a leaving node is empty. The node's agent is contacted only while the node is listed. */
const LEAVE_CHECK_MS = 10_000;
/** Time after which the node is removed even if its agent has not deleted the pods and volumes. */
const MAX_LEAVE_MS = 3_600_000;

export type NoticeDueDeps = NotifyDeps & {
  /** Begins a backup according to the pod's schedule. Returns false if no backup could begin. */
  lastBackup(tx: Db, pod: Pod): Promise<boolean>;
  /** Queues an immediate sync of the executor. */
  wake(executorId: string): void;
};

export function noticeDueHandlers(deps: NoticeDueDeps) {
  /** Locks the executor, its pods and their accounts, so that rentals, announcements and charges wait. */
  async function lock(tx: Db, noticeId: string): Promise<void> {
    const notice = await findNotice(tx, noticeId);
    if (notice === undefined) return;
    await lockRow(tx, 'executors', notice.executor_id);
    const pods = await listUnendedOn(tx, notice.executor_id);
    const [ids, accountIds] = [pods.map(({ id }) => id), pods.map((pod) => pod.account_id)];
    await lockRows(tx, 'pods', ids);
    await lockRows(tx, 'accounts', accountIds);
  }

  /** Pauses the node and begins the removal of its pods. Usage is charged up to the announced time. */
  async function beginLeave(tx: Db, notice: Notice): Promise<void> {
    const { executor_id: executorId, start_at: atMs } = notice;
    await updateExecutor(tx, executorId, { paused: 1 });
    for (const pod of await listKeptOn(tx, executorId)) {
      const reason = 'provider_notice';
      await beginRemoval(tx, deps, pod, { actor: SYSTEM_ACTOR, reason, atMs });
    }
    await setDue(tx, 'notice-end', notice.id, atMs);
  }

  /**
   * Removes the node once it has no pods and no unsaved volumes, or after `MAX_LEAVE_MS`. Returns true if the node is
   * removed.
   */
  async function finishLeave(tx: Db, notice: Notice, nowMs: number): Promise<boolean> {
    const { executor_id: executorId } = notice;
    const isEmpty =
      (await listUnendedOn(tx, executorId)).length === 0 &&
      !(await hasUnsaved(tx, executorId, nowMs));
    // `updated_at` is the actual start, which may be late.
    if (!isEmpty && nowMs < notice.updated_at + MAX_LEAVE_MS) return false;
    await retireExecutor(tx, executorId, nowMs);
    return true;
  }

  return {
    'notice-backup': {
      lock,
      async run(tx, { subject }) {
        const notice = await findNotice(tx, subject);
        if (notice?.state !== 'open') return undefined;
        let backups = 0;
        for (const pod of await listKeptOn(tx, notice.executor_id)) {
          if (await deps.lastBackup(tx, pod)) backups += 1;
        }
        return backups === 0 ? undefined : { after: () => deps.wake(notice.executor_id) };
      },
    },
    'notice-start': {
      lock,
      async run(tx, { subject, dueAtMs, nowMs }) {
        const notice = await findNotice(tx, subject);
        if (notice === undefined) return undefined;
        const wake = () => deps.wake(notice.executor_id);
        const leaving = notice.permanent === 1 ? await listKeptOn(tx, notice.executor_id) : [];
        const times = { plannedMs: notice.start_at, dueAtMs, nowMs };
        const againAtMs = notice.state === 'open' ? deferUntilContact(leaving, times) : null;
        if (againAtMs !== null) return { againAtMs, after: wake };
        if (!(await moveNotice(tx, notice.id, 'started', nowMs))) return undefined;
        await notifyRenters(tx, deps, notice, { step: 'started', actor: SYSTEM_ACTOR });
        if (notice.permanent === 1) await beginLeave(tx, notice);
        else await setDue(tx, 'notice-end', notice.id, noticeEndMs(notice));
        return { after: wake };
      },
    },
    'notice-end': {
      lock,
      async run(tx, { subject, nowMs }) {
        const notice = await findNotice(tx, subject);
        if (notice?.state !== 'started') return undefined;
        if (notice.permanent === 1 && !(await finishLeave(tx, notice, nowMs))) {
          return { againAtMs: nowMs + LEAVE_CHECK_MS };
        }
        await moveNotice(tx, notice.id, 'done', nowMs);
        await updateExecutor(tx, notice.executor_id, { notice_json: null });
        await notifyRenters(tx, deps, notice, { step: 'ended', actor: SYSTEM_ACTOR });
        return undefined;
      },
    },
  } satisfies DueHandlers;
}
