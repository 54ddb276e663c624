/** Pods that stand still because nobody pays for them, or uses them: stopped with all their data, started again, or removed after the grace. */
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { graceMs } from '../../money/metering/usage.service.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import { wirePhase, wireStatus } from './pod.state.ts';
import { movePod } from './pod.store.ts';
import { usedUntil } from './pod-contact.ts';
import { clearGraceEnd, GRACE_MS, setGraceEnd } from './pod-dues.ts';
import { BY_ITSELF, recordPodEvent } from './pod-event.ts';
import { idleFrom } from './pod-idle.ts';

type Deps = { clock: Clock; random: Random };

export type StopReason = 'balance_exhausted' | 'max_spend_reached' | 'idle_shutdown';

const MESSAGES: Record<StopReason, string> = {
  balance_exhausted: 'The balance is used up: top up to start the pod again before it is deleted',
  max_spend_reached:
    'max_spend_usd is reached: raise it to start the pod again before it is deleted',
  idle_shutdown:
    'Nobody used the pod for idle_shutdown_minutes: set it anew to start the pod again before it is deleted',
};

/** It is charged until `atMs`, which may be long ago; its grace begins now, with the stop. False when it does not run. */
export async function stopPod(
  tx: Db,
  deps: Deps,
  pod: Pod,
  { reason, atMs }: { reason: StopReason; atMs: number },
): Promise<boolean> {
  const nowMs = deps.clock.now();
  const change = {
    phase: wirePhase('stopped') ?? '',
    reason_code: reason,
    message: MESSAGES[reason],
    updated_at: nowMs,
  };
  const metered = {
    atMs: usedUntil(pod, Math.min(atMs, nowMs)),
    cause: reason,
    leavesRunway: true,
  };
  const keptMs = await graceMs(tx, pod.id, { atMs: metered.atMs, fullMs: GRACE_MS });
  if (!(await movePod(tx, pod.id, 'stopped', change, metered))) return false;
  await setGraceEnd(tx, pod.id, { stoppedAtMs: nowMs, keptMs });
  const kept = { kept_until: naiveUtc(nowMs + keptMs), stopped_at: naiveUtc(atMs) };
  await recordPodEvent(tx, deps, pod, {
    ...BY_ITSELF,
    toStatus: wireStatus('stopped'),
    reason,
    facts: { detail: 'stopped', ...kept },
  });
  return true;
}

/** False when it does not stand still. */
export async function resumePod(tx: Db, deps: Deps, pod: Pod): Promise<boolean> {
  const change = {
    phase: wirePhase('starting') ?? '',
    reason_code: null,
    message: '',
    updated_at: deps.clock.now(),
    ...idleFrom(deps.clock.now()),
  };
  if (!(await movePod(tx, pod.id, 'starting', change, { from: ['stopped'] }))) return false;
  await clearGraceEnd(tx, pod.id);
  await recordPodEvent(tx, deps, pod, {
    ...BY_ITSELF,
    toStatus: wireStatus('starting'),
    facts: { detail: 'resumed' },
  });
  return true;
}
