/** Stops unused pods that have `idle_shutdown_minutes`: a warning, then the stop at the computed instant. */
import { naiveUtc } from '#shared/runtime/clock.ts';
import { updateRunway } from '../../money/metering/runway.service.ts';
import { graceMs } from '../../money/metering/usage.service.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import type { DueHandlers } from '../../platform/schedule/schedule.ts';
import { minutesLeft } from '../../platform/schedule/warnings.ts';
import { findAnyPod } from '../pods/pod-access.ts';
import { recordPodEvent, SYSTEM_EVENT } from '../pods/pod-events.ts';
import { mailIdle } from '../pods/pod-mails.ts';
import { GRACE_MS } from '../pods/pod-stop.ts';
import { type CutOffDeps, lockPod, stopAndBackUp } from './cut-off.ts';

/**
 * Interval of retries until the agent has confirmed that the pod was idle up to its stop. Each retry queries the agent.
 */
const CONFIRM_MS = 10_000;

/** Handlers of the rows that pods/pod-idle.ts schedules and clears. */
export function idleHandlers(deps: CutOffDeps) {
  return {
    'idle-warning': {
      lock: lockPod,
      async run(tx, { subject, nowMs }) {
        const pod = await findIdlePod(tx, subject);
        if (pod === undefined || nowMs >= pod.idle_stop_at) return undefined;
        await warn(tx, deps, pod, nowMs);
        return undefined;
      },
    },
    'idle-shutdown': {
      lock: lockPod,
      async run(tx, { subject, nowMs }) {
        const pod = await findIdlePod(tx, subject);
        if (pod === undefined) return undefined;
        const { idle_stop_at: atMs, idle_until: untilMs, executor_id: executorId } = pod;
        if (atMs > nowMs) return { againAtMs: atMs };
        const after = () => deps.wake(executorId);
        // Time without measurements counts as used.
        if ((untilMs ?? 0) < atMs) return { againAtMs: nowMs + CONFIRM_MS, after };
        await stopAndBackUp(tx, deps, pod, { reason: 'idle_shutdown', atMs });
        await updateRunway(tx, pod.account_id, nowMs);
        return { after };
      },
    },
  } satisfies DueHandlers;
}

type IdlePod = Pod & { idle_stop_at: number };

async function findIdlePod(tx: Db, id: string): Promise<IdlePod | undefined> {
  const pod = await findAnyPod(tx, id);
  const atMs = pod?.idle_stop_at ?? null;
  return pod?.state === 'running' && atMs !== null ? { ...pod, idle_stop_at: atMs } : undefined;
}

async function warn(tx: Db, deps: CutOffDeps, pod: IdlePod, nowMs: number): Promise<void> {
  const { idle_stop_at: atMs } = pod;
  const keptMs = await graceMs(tx, pod.id, { atMs, fullMs: GRACE_MS });
  await mailIdle(tx, deps.mails, pod, { stopsAt: atMs, removalAt: atMs + keptMs, nowMs });
  await recordPodEvent(tx, deps, pod, {
    ...SYSTEM_EVENT,
    reason: 'idle_shutdown',
    facts: {
      detail: 'idle_warning',
      minutes_left: minutesLeft(atMs, nowMs),
      stops_at: naiveUtc(atMs),
    },
  });
}
