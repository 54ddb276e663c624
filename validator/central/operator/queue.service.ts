/** Waiting work by kind, and differences between nodes and pods that the sync found. */
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { huidOf } from '../market/executors/executor-response.ts';
import { countDrift, driftBefore } from '../market/pods/drift.ts';
import type { Database } from '../platform/database/tables.ts';
import { readBacklog } from '../platform/metrics/backlog.job.ts';
import type { DriftList, Queues } from './queue.schemas.ts';
import { chargesWaiting, payoutsWaiting, webhooksFailing } from './queue.store.ts';

const DAY_MS = 86_400_000;
const SECOND_MS = 1_000;

export function createQueues({ db, clock }: { db: Database; clock: Clock }) {
  return {
    async queues(): Promise<Queues> {
      const backlog = await readBacklog(db, clock);
      const { nowMs } = backlog;
      const failing = new Map(backlog.failing.map(({ kind, count }) => [kind, count]));
      const waiting = [
        ...backlog.waiting.map((queue) => ({ ...queue, failing: failing.get(queue.kind) ?? 0 })),
        { kind: 'webhook', ...(await webhooksFailing(db)) },
        { kind: 'charge', ...(await chargesWaiting(db, nowMs)) },
        { kind: 'payout', ...(await payoutsWaiting(db, nowMs)) },
      ];
      return {
        counted_at: naiveUtc(nowMs),
        queues: waiting.map(({ kind, count, oldestMs, failing: failed }) => ({
          kind,
          due: count,
          failing: failed,
          oldest_due_at: oldestMs === null ? null : naiveUtc(oldestMs),
          oldest_age_seconds: oldestMs === null ? 0 : Math.max(0, nowMs - oldestMs) / SECOND_MS,
        })),
        pods: [...backlog.pods],
        nodes: [...backlog.executors],
        mails: [...backlog.mails],
      };
    },

    async drift({ before, limit }: { before?: number | undefined; limit: number }) {
      const rows = await driftBefore(db, before ?? Number.MAX_SAFE_INTEGER, limit + 1);
      const entries = rows.slice(0, limit);
      return {
        last_day: await countDrift(db, clock.now() - DAY_MS),
        entries: entries.map(({ at_ms: atMs, ...entry }) => ({
          ...entry,
          executor_huid: huidOf(entry.executor_id),
          corrected: entry.kind !== 'pod_unknown',
          at: naiveUtc(atMs),
        })),
        next: rows.length > limit ? (entries.at(-1)?.seq ?? null) : null,
      } satisfies DriftList;
    },
  };
}
