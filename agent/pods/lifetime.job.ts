/** Removes pods whose `remove_after_seconds` has elapsed. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { ClockTrust } from '#shared/runtime/guarded-clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { PodService } from './pod.service.ts';
import type { PodRecords } from './pod-records.ts';
import { specOf } from './pod-row.ts';

export const LIFETIME_INTERVAL_MS = 10_000;
const SECOND_MS = 1_000;

export function createLifetimes(deps: {
  records: PodRecords;
  service: Pick<PodService, 'remove'>;
  clock: Clock;
  trust: Pick<ClockTrust, 'isSuspect'>;
  log: Log;
}) {
  const { records, service, clock, log } = deps;
  return {
    async runOnce(): Promise<void> {
      if (deps.trust.isSuspect()) return;
      for (const row of records.list()) {
        if (row.desired === 'removed') continue;
        const { remove_after_seconds: seconds } = specOf(row);
        if (seconds === undefined) continue;
        if (clock.now() - row.created_ms < seconds * SECOND_MS) continue;
        log.info({ pod_id: row.id, seconds }, 'pod reached its maximum lifetime');
        await service.remove(row.id);
      }
    },
  };
}
