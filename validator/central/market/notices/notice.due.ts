/** What happens when a notice period begins and ends; late, it counts from its own time all the same. */

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
import { noticeEndMs } from './notice.rules.ts';
import { findNotice, moveNotice } from './notice.store.ts';
import { type TellDeps, tellRenters } from './notice.tell.ts';

/** A node that goes is looked at this often: its agent can be reached only while it is listed. */
const LEAVING_LOOK_MS = 10_000;
/** Longer nobody waits for its agent to drop what renters had there. */
const LONGEST_LEAVE_MS = 3_600_000;

export type NoticeDueDeps = TellDeps & {
  /** Begins a backup by the pod's own schedule; false when none could begin. */
  lastBackup(tx: Db, pod: Pod): Promise<boolean>;
  /** Has the sync look at this executor at once. */
  wake(executorId: string): void;
};

export function noticeDueHandlers(deps: NoticeDueDeps) {
  /** Whoever rents or announces waits, and whoever charges these renters. */
  async function lock(tx: Db, noticeId: string): Promise<void> {
    const notice = await findNotice(tx, noticeId);
    if (notice === undefined) return;
    await lockRow(tx, 'executors', notice.executor_id);
    const pods = await listUnendedOn(tx, notice.executor_id);
    const [ids, accountIds] = [pods.map(({ id }) => id), pods.map((pod) => pod.account_id)];
    await lockRows(tx, 'pods', ids);
    await lockRows(tx, 'accounts', accountIds);
  }

  /** The pods go the way of any removal; what was used until then is charged until the announced time. */
  async function leave(tx: Db, notice: Notice): Promise<void> {
    const { executor_id: executorId, start_at: atMs } = notice;
    await updateExecutor(tx, executorId, { paused: 1 });
    for (const pod of await listKeptOn(tx, executorId)) {
      const reason = 'provider_notice';
      await beginRemoval(tx, deps, pod, { actor: SYSTEM_ACTOR, reason, atMs });
    }
    await setDue(tx, 'notice-end', notice.id, atMs);
  }

  /** Whether the node is off the market for good now. */
  async function isGone(tx: Db, notice: Notice, nowMs: number): Promise<boolean> {
    const { executor_id: executorId } = notice;
    const isEmpty =
      (await listUnendedOn(tx, executorId)).length === 0 &&
      !(await hasUnsaved(tx, executorId, nowMs));
    // Since it was begun, which may have been late.
    if (!isEmpty && nowMs < notice.updated_at + LONGEST_LEAVE_MS) return false;
    await retireExecutor(tx, executorId, nowMs);
    return true;
  }

  return {
    'notice-backup': {
      lock,
      async run(tx, { subject }) {
        const notice = await findNotice(tx, subject);
        if (notice?.state !== 'open') return undefined;
        let begun = 0;
        for (const pod of await listKeptOn(tx, notice.executor_id)) {
          if (await deps.lastBackup(tx, pod)) begun += 1;
        }
        return begun === 0 ? undefined : { after: () => deps.wake(notice.executor_id) };
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
        await tellRenters(tx, deps, notice, { step: 'started', actor: SYSTEM_ACTOR });
        if (notice.permanent === 1) await leave(tx, notice);
        else await setDue(tx, 'notice-end', notice.id, noticeEndMs(notice));
        return { after: wake };
      },
    },
    'notice-end': {
      lock,
      async run(tx, { subject, nowMs }) {
        const notice = await findNotice(tx, subject);
        if (notice?.state !== 'started') return undefined;
        if (notice.permanent === 1 && !(await isGone(tx, notice, nowMs))) {
          return { againAtMs: nowMs + LEAVING_LOOK_MS };
        }
        await moveNotice(tx, notice.id, 'done', nowMs);
        await updateExecutor(tx, notice.executor_id, { notice_json: null });
        await tellRenters(tx, deps, notice, { step: 'ended', actor: SYSTEM_ACTOR });
        return undefined;
      },
    },
  } satisfies DueHandlers;
}
