/** What is left of an account's pods that have ended (contract 5.2). */
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { spentOf } from '../../money/metering/spent.ts';
import type { Database } from '../../platform/database/tables.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import { findExecutors } from '../executors/executor.service.ts';
import { podRow } from './pod.row.ts';
import type { PodHistoryQuery, PodHistoryResponse } from './pod-history.schemas.ts';
import { countEnded, listEnded } from './pod-history.store.ts';

export type PodHistory = ReturnType<typeof createPodHistory>;

/** No notebook server of a pod that has ended can be entered. */
const NO_TOKEN = '';

export function createPodHistory({ db, clock }: { db: Database; clock: Clock }) {
  return {
    /** Newest end first. A failed creation comes in once nothing of it is left on its node. */
    async list(
      { accountId }: UserIdentity,
      { page, limit }: PodHistoryQuery,
    ): Promise<PodHistoryResponse> {
      const offset = (page - 1) * limit;
      const pods = await listEnded(db, accountId, { offset, limit });
      const executors = await findExecutors(db, [...new Set(pods.map((pod) => pod.executor_id))]);
      const byId = new Map(executors.map((executor) => [executor.id, executor]));
      const spent = await spentOf(
        db,
        pods.map(({ id }) => id),
      );
      const items = pods.flatMap((pod) => {
        const executor = byId.get(pod.executor_id);
        if (executor === undefined || pod.ended_at === null) return [];
        const row = podRow(pod, executor, clock.now(), NO_TOKEN, null, spent.get(pod.id) ?? 0);
        return [{ ...row, deleted_at: naiveUtc(pod.ended_at) }];
      });
      const total = await countEnded(db, accountId);
      return { items, total, page, limit, has_next: offset + limit < total };
    },
  };
}
