/** Holds pods to their share of the disk where the kernel does not: measures one after the other, warns, stops. */
import type { PodCondition } from '#shared/agent-api/pod.ts';
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/log.ts';
import { type ContainerEngine, EngineError } from '../docker/engine.ts';
import type { PodRow } from '../store/pod.store.ts';
import type { DiskQuotaProbe } from './disk-quota.ts';
import { specOf } from './pod.record.ts';
import type { PodRecords } from './pod.records.ts';

/** The engine walks all files of a container to answer. */
export const DISK_INTERVAL_MS = 60_000;
const WARN_SHARE = 0.85;
/** Who is above the limit has so long to tidy up, unless it is above it by far. */
const GRACE_MS = 55_000;
const NO_GRACE_SHARE = 1.25;

type Usage = { bytes: number; limit: number; overSinceMs: number | null; condition: PodCondition };

export function createDiskWatch(deps: {
  engine: ContainerEngine;
  records: PodRecords;
  quota: DiskQuotaProbe;
  clock: Clock;
  log: Log;
}) {
  const { engine, records, quota, clock, log } = deps;
  /** Of pods that were measured and are not gone. */
  const usages = new Map<string, Usage>();

  function note(row: PodRow, bytes: number, limit: number): Usage {
    const before = usages.get(row.id);
    const over = bytes >= limit;
    const usage = {
      bytes,
      limit,
      overSinceMs: over ? (before?.overSinceMs ?? clock.monotonicMs()) : null,
      condition: conditionOf(bytes, limit, before?.condition, clock.now()),
    };
    usages.set(row.id, usage);
    return usage;
  }

  function mustStop({ bytes, limit, overSinceMs }: Usage): boolean {
    if (overSinceMs === null) return false;
    return bytes >= limit * NO_GRACE_SHARE || clock.monotonicMs() - overSinceMs >= GRACE_MS;
  }

  async function measure(row: PodRow, containerId: string, limit: number): Promise<void> {
    const bytes = await engine.containerDiskBytes(containerId);
    if (bytes === null) return;
    const usage = note(row, bytes, limit);
    if (!mustStop(usage)) return;
    log.warn({ pod_id: row.id, bytes, limit }, 'a pod is above its disk limit and is stopped');
    // Written first: a pod that rests is not started again when its container ends.
    const { message } = usage.condition;
    const same = (now: PodRow) => now.phase === 'running' && now.container_id === containerId;
    const resting = records.change(row.id, (now) =>
      same(now)
        ? { phase: 'failed', reason: 'DiskQuotaExceeded', message, next_retry_ms: null }
        : null,
    );
    if (resting !== null) await stop(row, containerId);
  }

  async function stop(row: PodRow, containerId: string): Promise<void> {
    await engine.stopContainer(containerId, specOf(row).stop_grace_seconds);
  }

  async function look(row: PodRow): Promise<void> {
    const limit = specOf(row).limits.disk_bytes;
    const { container_id: containerId } = row;
    if (limit === undefined || containerId === null) return;
    if (row.phase === 'running') await measure(row, containerId, limit);
    // The agent may have been killed between the decision and the stop.
    else if (row.reason === 'DiskQuotaExceeded') await stop(row, containerId);
  }

  return {
    async runOnce(): Promise<void> {
      if ((await quota.find()) !== 'poll') return;
      const rows = records.list().filter((row) => row.phase !== 'removed');
      const known = new Set(rows.map((row) => row.id));
      for (const id of usages.keys()) if (!known.has(id)) usages.delete(id);
      for (const row of rows) {
        await look(row).catch((error: unknown) => {
          if (!(error instanceof EngineError)) throw error;
          log.debug({ pod_id: row.id, detail: error.message }, 'a pod could not be measured');
        });
      }
    },
    /** Null for a pod that was not measured. */
    conditionOf: (podId: string): PodCondition | null => usages.get(podId)?.condition ?? null,
  };
}

function conditionOf(
  bytes: number,
  limit: number,
  before: PodCondition | undefined,
  nowMs: number,
): PodCondition {
  const status = bytes < limit * WARN_SHARE;
  const full = bytes >= limit ? 'DiskQuotaExceeded' : 'DiskNearlyFull';
  const percent = Math.floor((bytes / limit) * 100);
  return {
    type: 'DiskWithinQuota',
    status,
    reason: status ? 'Ok' : full,
    message: `The pod has written ${bytes} of ${limit} bytes (${percent} %)`,
    last_transition_ms: before?.status === status ? before.last_transition_ms : nowMs,
  };
}
