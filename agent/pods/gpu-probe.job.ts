/** Checks from inside each pod that its GPUs are visible: a reload of systemd can remove them without an event. */

import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import type { GpuDriver } from '../gpu/gpu-driver.ts';
import { LIST_ARGS, listedUuids } from '../gpu/nvidia/mig.ts';
import type { PodRecords } from './pod-records.ts';
import { specOf } from './pod-row.ts';

export const GPU_PROBE_INTERVAL_MS = 60_000;
/** Consecutive probes that do not list a GPU after which the GPU counts as lost. */
export const MISSES_UNTIL_LOST = 3;
const MAX_PARALLEL_PROBES = 4;
const COMMAND = ['nvidia-smi', ...LIST_ARGS];
/** Exit codes for a program that is missing or cannot be executed. */
const NOT_RUNNABLE = [126, 127];

/** Returns null if the program did not end in time. A program that cannot be started rejects or ends with 126 or 127. */
export type RunInContainer = (
  containerId: string,
  argv: readonly string[],
) => Promise<{ exitCode: number; stdout: string } | null>;

export type GpuProbe = ReturnType<typeof createGpuProbe>;

type ProbeHistory = {
  containerId: string;
  phaseSinceMs: number;
  misses: number;
  firstMissMs: number;
};

export function createGpuProbe(deps: {
  records: PodRecords;
  driver: Pick<GpuDriver, 'kind'>;
  runInContainer: RunInContainer;
  clock: Clock;
  log: Log;
}) {
  const { records, clock, log } = deps;
  const slots = createSemaphore(MAX_PARALLEL_PROBES);
  const histories = new Map<string, ProbeHistory>();

  /**
   * Returns true if all GPUs of the pod are visible inside it. Null if the probe could not run, which is not evidence
   * about the GPUs.
   */
  async function seesAllGpus(
    containerId: string,
    uuids: readonly string[],
  ): Promise<boolean | null> {
    try {
      const result = await deps.runInContainer(containerId, COMMAND);
      if (result === null) return false;
      if (NOT_RUNNABLE.includes(result.exitCode)) return null;
      const seen = listedUuids(result.stdout);
      return uuids.every((uuid) => seen.has(uuid));
    } catch (error) {
      log.debug(
        { container: containerId, detail: messageOf(error) },
        'GPU probe could not run in a pod',
      );
      return null;
    }
  }

  async function probe(podId: string): Promise<void> {
    const row = records.get(podId);
    // Read from the spec, not from the leases, because GPUs leased for a staged generation are not in this container.
    const uuids = row === null ? [] : specOf(row).gpu_uuids;
    if (row?.phase !== 'running' || row.container_id === null || uuids.length === 0) {
      histories.delete(podId);
      return;
    }
    const seen = await seesAllGpus(row.container_id, uuids);
    if (seen === null) return;
    const run = { containerId: row.container_id, phaseSinceMs: row.phase_since_ms };
    const before = histories.get(podId);
    // A restart of the pod resets the count.
    const same =
      before?.containerId === run.containerId && before.phaseSinceMs === run.phaseSinceMs;
    const misses = seen ? 0 : (same ? before.misses : 0) + 1;
    const firstMissMs = same && before.misses > 0 ? before.firstMissMs : clock.now();
    histories.set(podId, { ...run, misses, firstMissMs });
    if (misses !== MISSES_UNTIL_LOST) return;
    log.error({ pod_id: podId, gpus: uuids }, 'GPUs are no longer visible inside a pod');
  }

  return {
    /** Probes each running pod with real GPUs once. */
    async runOnce(): Promise<void> {
      if (deps.driver.kind !== 'nvidia') return;
      const rows = records.list();
      const known = new Set(rows.map((row) => row.id));
      for (const id of histories.keys()) if (!known.has(id)) histories.delete(id);
      await Promise.all(rows.map(({ id }) => slots.run(() => probe(id))));
    },
    /** Wall-clock time of the first miss if the pod's GPUs count as lost, otherwise null. */
    lostSinceMs(podId: string): number | null {
      const found = histories.get(podId);
      const row = records.get(podId);
      const current =
        found?.containerId === row?.container_id && found?.phaseSinceMs === row?.phase_since_ms;
      return found !== undefined && current && found.misses >= MISSES_UNTIL_LOST
        ? found.firstMissMs
        : null;
    },
  };
}
