/** Looks from inside each pod whether its GPUs are still there: a reload of systemd may take them away unseen. */

import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import type { GpuDriver } from '../gpu/gpu-driver.ts';
import { LIST_ARGS, listedUuids } from '../gpu/nvidia/mig.ts';
import type { PodRecords } from './pod-records.ts';
import { specOf } from './pod-row.ts';

export const GPU_PROBE_INTERVAL_MS = 60_000;
/** Looks in a row without a GPU until it counts as lost. */
export const MISSES_UNTIL_LOST = 3;
const MAX_PARALLEL_LOOKS = 4;
const COMMAND = ['nvidia-smi', ...LIST_ARGS];
/** What a shell or runtime says of a program that is not there or cannot be run. */
const NOT_RUNNABLE = [126, 127];

/** Null when the program has not ended in its time; a program that cannot be started rejects or ends with 126 or 127. */
export type RunInContainer = (
  containerId: string,
  argv: readonly string[],
) => Promise<{ exitCode: number; stdout: string } | null>;

export type GpuProbe = ReturnType<typeof createGpuProbe>;

type Looks = { containerId: string; phaseSinceMs: number; misses: number; firstMissMs: number };

export function createGpuProbe(deps: {
  records: PodRecords;
  driver: Pick<GpuDriver, 'kind'>;
  runInContainer: RunInContainer;
  clock: Clock;
  log: Log;
}) {
  const { records, clock, log } = deps;
  const places = createSemaphore(MAX_PARALLEL_LOOKS);
  const looks = new Map<string, Looks>();

  /** Null when the look itself was not possible: that says nothing of the GPUs. */
  async function seesAll(containerId: string, uuids: readonly string[]): Promise<boolean | null> {
    try {
      const result = await deps.runInContainer(containerId, COMMAND);
      if (result === null) return false;
      if (NOT_RUNNABLE.includes(result.exitCode)) return null;
      const seen = listedUuids(result.stdout);
      return uuids.every((uuid) => seen.has(uuid));
    } catch (error) {
      log.debug({ container: containerId, detail: messageOf(error) }, 'no look into a pod');
      return null;
    }
  }

  async function look(podId: string): Promise<void> {
    const row = records.get(podId);
    // Not the leases: those of a generation in preparation are not in this container.
    const uuids = row === null ? [] : specOf(row).gpu_uuids;
    if (row?.phase !== 'running' || row.container_id === null || uuids.length === 0) {
      looks.delete(podId);
      return;
    }
    const seen = await seesAll(row.container_id, uuids);
    if (seen === null) return;
    const run = { containerId: row.container_id, phaseSinceMs: row.phase_since_ms };
    const before = looks.get(podId);
    // A pod that was started anew begins anew.
    const same =
      before?.containerId === run.containerId && before.phaseSinceMs === run.phaseSinceMs;
    const misses = seen ? 0 : (same ? before.misses : 0) + 1;
    const firstMissMs = same && before.misses > 0 ? before.firstMissMs : clock.now();
    looks.set(podId, { ...run, misses, firstMissMs });
    if (misses !== MISSES_UNTIL_LOST) return;
    log.error({ pod_id: podId, gpus: uuids }, 'a pod does not see its GPUs any more');
  }

  return {
    /** One look into each running pod with real GPUs. */
    async runOnce(): Promise<void> {
      if (deps.driver.kind !== 'nvidia') return;
      const rows = records.list();
      const known = new Set(rows.map((row) => row.id));
      for (const id of looks.keys()) if (!known.has(id)) looks.delete(id);
      await Promise.all(rows.map(({ id }) => places.run(() => look(id))));
    },
    /** Since when the pod's GPUs are lost to it; null while they are not known to be. */
    lostSinceMs(podId: string): number | null {
      const found = looks.get(podId);
      const row = records.get(podId);
      const current =
        found?.containerId === row?.container_id && found?.phaseSinceMs === row?.phase_since_ms;
      return found !== undefined && current && found.misses >= MISSES_UNTIL_LOST
        ? found.firstMissMs
        : null;
    },
  };
}
