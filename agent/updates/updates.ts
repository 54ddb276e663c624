/** Composes the agent's own updates; without a configured source, reports that updates are off. */
import type { VerifyResult } from '#shared/api/agent/inventory.ts';
import type { PodPhase } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';
import type { OperationStore } from '../backups/operation.store.ts';
import type { GpuDriver } from '../gpu/gpu-driver.ts';
import type { PeriodicWork } from '../periodic-work.ts';
import type { PodRow } from '../pods/pod.store.ts';
import type { PodRecords } from '../pods/pod-records.ts';
import type { Verification } from '../verify/verification.ts';
import {
  createUpdateService,
  UPDATE_PASS_MS,
  type UpdatePorts,
  type UpdateService,
  type WaitReason,
} from './update.service.ts';
import { noUpdates, type PodMark } from './update.state.ts';
import { createUpdateStore } from './update.store.ts';

export type SelfUpdatePorts = {
  executorId: string;
  clock: Clock;
  random: Random;
  log: Log;
  database: DatabaseSync;
  gpuDriver: GpuDriver;
  /** Null if the agent does not update itself. */
  updates: UpdatePorts | null;
};

type Parts = {
  records: PodRecords;
  operations: OperationStore;
  verify: Verification['verify'];
};

/** Does not check for updates until the caller runs `work`. */
export function createSelfUpdate(ports: SelfUpdatePorts, parts: Parts) {
  const updates = ports.updates && updateService(ports.updates, ports, parts);
  const pass = (service: UpdateService): PeriodicWork => ({
    name: 'update',
    intervalMs: UPDATE_PASS_MS,
    run: () => service.runOnce(),
  });

  return {
    status: () => updates?.status() ?? noUpdates(),
    work: updates === null ? [] : [pass(updates)],
  };
}

function updateService(
  updates: UpdatePorts,
  { clock, random, log, executorId, database, gpuDriver }: SelfUpdatePorts,
  { records, operations, verify }: Parts,
): UpdateService {
  return createUpdateService({
    ...updates,
    clock,
    random,
    log,
    executorId,
    store: createUpdateStore(database),
    workInProgress: () => workInProgress(records.list(), operations.unfinished(1)),
    runningPods: () => runningPods(records.list()),
    async tryContainer() {
      const { devices } = await gpuDriver.read();
      const result = await verify({ gpu_uuids: devices.map(({ uuid }) => uuid) });
      return problemIn(result);
    },
  });
}

/** Phases in which no launch, change or removal is in progress. */
const QUIET_PHASES: readonly PodPhase[] = [
  'running',
  'backoff',
  'failed',
  'quarantined',
  'removed',
];

/** Describes a launch, change, backup or restore that an update would interrupt; null if there is none. */
function workInProgress(
  pods: readonly Pick<PodRow, 'id' | 'phase' | 'staged_json' | 'fallback_json'>[],
  operations: readonly { kind: string }[],
): string | null {
  const [operation] = operations;
  if (operation !== undefined) return `a ${operation.kind} runs`;
  const pod = pods.find(({ phase, staged_json: staged, fallback_json: fallback }) => {
    const isChanging = staged !== null || fallback !== null;
    return !QUIET_PHASES.includes(phase) || (phase !== 'removed' && isChanging);
  });
  return pod === undefined ? null : `the pod ${pod.id} is being launched, changed or removed`;
}

/** Returns the pods with running containers. They must still run after the update. */
function runningPods(
  pods: readonly Pick<PodRow, 'id' | 'phase' | 'container_id' | 'generation'>[],
): PodMark[] {
  return pods.flatMap(({ id, phase, container_id, generation }) =>
    phase === 'running' && container_id !== null ? [{ id, container_id, generation }] : [],
  );
}

/** Returns null if the probe container started. */
function problemIn({ ok, reason_code: reason, steps }: VerifyResult): WaitReason | null {
  if (ok) return null;
  const message = steps.find(({ status }) => status === 'failed')?.message ?? '';
  const isGpu = reason === 'GPU_RUNTIME_DEVICE_FAULT';
  return { reason: isGpu ? 'NVIDIA_RUNTIME_MISMATCH' : 'RUNTIME_PROBE_FAILED', message };
}
