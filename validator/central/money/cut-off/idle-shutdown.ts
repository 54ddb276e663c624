/** What happens to a pod that nobody uses, where its renter asked for it: a warning, then the stop at the computed instant. */
import { naiveUtc } from '#shared/runtime/clock.ts';
import { findAnyPod } from '../../market/pods/pod-access.ts';
import { recordPodEvent, SYSTEM_EVENT } from '../../market/pods/pod-events.ts';
import { mailIdle } from '../../market/pods/pod-mails.ts';
import { GRACE_MS } from '../../market/pods/pod-stop.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import type { DueHandlers } from '../../platform/schedule/schedule.ts';
import { minutesLeft } from '../../platform/schedule/warnings.ts';
import { runwayChanged } from '../metering/runway.service.ts';
import { graceMs } from '../metering/usage.service.ts';
import { type CutOffDeps, lockPod, stopAndSave } from './cut-off.ts';

/** Between looks at whether it was unused up to its instant: as often as its agent is asked. */
const CONFIRM_MS = 10_000;

/** Set and cleared by pods/pod-idle.ts. */
export function idleHandlers(deps: CutOffDeps) {
  return {
    'idle-warning': {
      lock: lockPod,
      async run(tx, { subject, nowMs }) {
        const pod = await stoppingPod(tx, subject);
        if (pod === undefined || nowMs >= pod.idle_stop_at) return undefined;
        await warn(tx, deps, pod, nowMs);
        return undefined;
      },
    },
    'idle-shutdown': {
      lock: lockPod,
      async run(tx, { subject, nowMs }) {
        const pod = await stoppingPod(tx, subject);
        if (pod === undefined) return undefined;
        const { idle_stop_at: atMs, idle_until: untilMs, executor_id: executorId } = pod;
        if (atMs > nowMs) return { againAtMs: atMs };
        const after = () => deps.wake(executorId);
        // What was not seen may have been use.
        if ((untilMs ?? 0) < atMs) return { againAtMs: nowMs + CONFIRM_MS, after };
        await stopAndSave(tx, deps, pod, { reason: 'idle_shutdown', atMs });
        await runwayChanged(tx, pod.account_id, nowMs);
        return { after };
      },
    },
  } satisfies DueHandlers;
}

type StoppingPod = Pod & { idle_stop_at: number };

async function stoppingPod(tx: Db, id: string): Promise<StoppingPod | undefined> {
  const pod = await findAnyPod(tx, id);
  const atMs = pod?.idle_stop_at ?? null;
  return pod?.state === 'running' && atMs !== null ? { ...pod, idle_stop_at: atMs } : undefined;
}

async function warn(tx: Db, deps: CutOffDeps, pod: StoppingPod, nowMs: number): Promise<void> {
  const { idle_stop_at: atMs } = pod;
  const keptMs = await graceMs(tx, pod.id, { atMs, fullMs: GRACE_MS });
  await mailIdle(tx, deps.mails, pod, { stopsAt: atMs, removalAt: atMs + keptMs, nowMs });
  await recordPodEvent(tx, deps, pod, {
    ...{ ...SYSTEM_EVENT, reason: 'idle_shutdown' },
    facts: {
      detail: 'idle_warning',
      ...{ minutes_left: minutesLeft(atMs, nowMs), stops_at: naiveUtc(atMs) },
    },
  });
}
