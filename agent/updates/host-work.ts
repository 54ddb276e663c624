/** What on this host an update would cut off, what it has to leave alone, and what its probe container tells. Pure. */
import type { VerifyResult } from '#shared/api/agent/inventory.ts';
import type { PodPhase } from '#shared/api/agent/pod.ts';
import type { PodRow } from '../pods/pod.store.ts';
import type { Hold } from './update.service.ts';
import type { PodMark } from './update.state.ts';

/** In all others something is under way with the pod. */
const QUIET_PHASES: readonly PodPhase[] = [
  'running',
  'backoff',
  'failed',
  'quarantined',
  'removed',
];

/** A few words on launches, changes, backups and restores; null when there are none. */
export function workUnderWay(
  pods: readonly Pick<PodRow, 'id' | 'phase' | 'staged_json' | 'fallback_json'>[],
  operations: readonly { kind: string }[],
): string | null {
  const [operation] = operations;
  if (operation !== undefined) return `a ${operation.kind} runs`;
  const pod = pods.find(({ phase, staged_json: staged, fallback_json: fallback }) => {
    const isChanged = staged !== null || fallback !== null;
    return !QUIET_PHASES.includes(phase) || (phase !== 'removed' && isChanged);
  });
  return pod === undefined ? null : `the pod ${pod.id} is being launched, changed or removed`;
}

/** Pods whose containers run, as an update is to leave them. */
export function runningPods(
  pods: readonly Pick<PodRow, 'id' | 'phase' | 'container_id' | 'generation'>[],
): PodMark[] {
  return pods.flatMap(({ id, phase, container_id, generation }) =>
    phase === 'running' && container_id !== null ? [{ id, container_id, generation }] : [],
  );
}

/** Null when the container started. */
export function probeProblem({ ok, reason_code: reason, steps }: VerifyResult): Hold | null {
  if (ok) return null;
  const message = steps.find(({ status }) => status === 'failed')?.message ?? '';
  const isGpu = reason === 'GPU_RUNTIME_DEVICE_FAULT';
  return { reason: isGpu ? 'NVIDIA_RUNTIME_MISMATCH' : 'RUNTIME_PROBE_FAILED', message };
}
