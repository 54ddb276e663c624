/** Metric of the guarded clock, the same for every process. */
import type { ClockTrust } from '../runtime/guarded-clock.ts';
import { type Family, unlabelled } from './family.ts';

/** `prefix` is that of the process' metrics. */
export function clockFamily(prefix: string, { isSuspect }: Pick<ClockTrust, 'isSuspect'>): Family {
  return {
    name: `${prefix}clock_suspect`,
    help: '1 while the clock of the host is suspect: deletions, expiries, schedules and verdicts are then suspended.',
    type: 'gauge',
    labels: [],
    samples: () => unlabelled(isSuspect() ? 1 : 0),
  };
}
