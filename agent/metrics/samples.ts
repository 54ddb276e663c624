/** Latest samples of the host and of running pods. A job takes them; requests read them from memory, with their age. */
import { MAX_AGE_MS, MAX_TEXT_CHARS } from '#shared/api/agent/bounds.ts';
import {
  type HostMetrics,
  type PodMetrics,
  SAMPLE_INTERVAL_MS,
} from '#shared/api/agent/metrics.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { GatewayLink } from '../access/ssh/gateway-link.ts';
import type { ContainerEngine, ContainerUsage } from '../containers/engine/engine.ts';
import type { GpuDriver, GpuReading } from '../gpu/gpu-driver.ts';
import { loadOfCores } from '../gpu/simulated-load.ts';
import type { HostProbe, HostSample } from '../host/host-probe.ts';
import type { PodRow } from '../pods/pod.store.ts';
import type { PodRecords } from '../pods/pod-records.ts';
import { specOf } from '../pods/pod-row.ts';
import { nextSample, type PodSample } from './pod-sample.ts';
import type { PodUsage } from './usage/pod-usage.ts';

const MS_PER_SECOND = 1_000;
/** Length of the driver's message in the log. */
const MAX_LOGGED_CHARS = 500;

export type Samples = ReturnType<typeof createSamples>;

export type SamplesPorts = {
  clock: Clock;
  log: Log;
  engine: Pick<ContainerEngine, 'info'>;
  podUsage: PodUsage;
  gpuDriver: Pick<GpuDriver, 'kind' | 'read' | 'follow'>;
  hostProbe: Pick<HostProbe, 'sample'>;
  records: Pick<PodRecords, 'get' | 'list'>;
  gatewayLink: Pick<GatewayLink, 'traffic'>;
  /** Called when a source has returned new values, for the metric of its age. */
  onCollected(collector: 'engine' | 'gpu' | 'host'): void;
};

/** Samples are kept in memory only; those of a pod are dropped when it is removed. */
export function createSamples(deps: SamplesPorts) {
  const { clock, log, engine, gpuDriver, records } = deps;
  const simulated = gpuDriver.kind === 'simulated';
  let host: { atMs: number; figures: HostSample } | null = null;
  let rootDir: string | null = null;
  let gpus: { atMs: number; reading: GpuReading } | null = null;
  let gpuFailures = 0;
  let gpusFail = false;
  const pods = new Map<string, PodSample>();
  const ageOf = (atMs: number) => Math.min(MAX_AGE_MS, Math.round(clock.monotonicMs() - atMs));

  /** The engine's data folder, cached for the time that the engine does not answer. */
  async function engineFolder(): Promise<string> {
    try {
      ({ rootDir } = await engine.info());
      deps.onCollected('engine');
    } catch (error) {
      if (rootDir === null) throw error;
    }
    return rootDir;
  }

  /** Keeps the last sample if the host cannot be sampled; its age then grows. */
  async function sampleHost(): Promise<void> {
    try {
      const figures = await deps.hostProbe.sample(await engineFolder());
      host = { atMs: clock.monotonicMs(), figures };
      deps.onCollected('host');
    } catch (error) {
      log.debug({ detail: messageOf(error) }, 'host sample failed');
    }
  }

  /** Logs the first failure and the recovery, not each failed reading. */
  function recordGpuReading({ ageMs, error, cards }: GpuReading): void {
    const fails = ageMs > 0 || (error !== null && cards.length === 0);
    if (fails) gpuFailures += 1;
    if (fails && !gpusFail) {
      log.warn({ detail: error?.slice(0, MAX_LOGGED_CHARS) }, 'GPUs cannot be read');
    }
    if (!fails && gpusFail) log.info('GPUs readable again');
    gpusFail = fails;
  }

  async function samplePods(reading: GpuReading): Promise<void> {
    const rows = records.list();
    const live = new Set(rows.flatMap((row) => (row.phase === 'removed' ? [] : [row.id])));
    for (const id of pods.keys()) if (!live.has(id)) pods.delete(id);
    const running = rows.flatMap((row) =>
      row.phase === 'running' && row.container_id !== null
        ? [{ row, containerId: row.container_id }]
        : [],
    );
    const usages = await deps.podUsage.read(running.map(({ containerId }) => containerId));
    for (const { row, containerId } of running) {
      recordPod(row, containerId, { usage: usages.get(containerId) ?? null, reading });
    }
    followPods(running.map(({ row }) => row));
  }

  /** Sets the load of simulated cards from their pods; the next reading shows it. */
  function followPods(running: readonly PodRow[]): void {
    if (gpuDriver.follow === undefined) return;
    const loads = running.flatMap((row) => {
      const { gpu_uuids: uuids, limits } = specOf(row);
      const load = loadOfCores(pods.get(row.id)?.usedCores ?? null, limits.cpu_cores);
      return uuids.map((uuid) => [uuid, load] as const);
    });
    gpuDriver.follow(new Map(loads));
  }

  function recordPod(
    { id, spec_json }: PodRow,
    containerId: string,
    { usage, reading }: { usage: ContainerUsage | null; reading: GpuReading },
  ): void {
    // From the spec, not the leases: leases of a generation in preparation are not in this container.
    const { gpu_uuids: uuids, publish_own_sshd: hasOwnSshd } = specOf({ spec_json });
    const open = deps.gatewayLink.traffic()?.sessions_by_pod ?? null;
    const measurement = {
      containerId,
      usage,
      atMs: clock.monotonicMs(),
      gpus: reading.devices.filter(({ uuid }) => uuids.includes(uuid)),
      isNew: reading.ageMs === 0,
      gpuCount: uuids.length,
      // Sessions of a server in the image are not observable.
      sessions: open === null || hasOwnSshd ? null : (open[id] ?? 0),
    };
    pods.set(id, nextSample(pods.get(id) ?? null, measurement));
  }

  return {
    /** Samples everything once. Rejects only if the agent's store cannot be read. */
    async runOnce(): Promise<void> {
      const [reading] = await Promise.all([gpuDriver.read(), sampleHost()]);
      gpus = { atMs: clock.monotonicMs(), reading };
      if (reading.ageMs === 0) deps.onCollected('gpu');
      recordGpuReading(reading);
      await samplePods(reading);
    },

    /** The last GPU reading and the current age of its values in milliseconds; null before the first. */
    gpus: () =>
      gpus === null
        ? null
        : { reading: gpus.reading, ageMs: gpus.reading.ageMs + clock.monotonicMs() - gpus.atMs },
    /** Number of readings without new values. */
    gpuFailures: () => gpuFailures,
    /** The last host sample and its age in milliseconds; null before the first. */
    hostFigures: () =>
      host === null ? null : { figures: host.figures, ageMs: clock.monotonicMs() - host.atMs },
    /** The pod's last sample; null if there is none. */
    lastOf: (id: string): PodSample | null => pods.get(id) ?? null,
    /** The pod's last sample and its age in milliseconds; null if there is none. */
    podUsage(id: string): { usage: ContainerUsage | null; ageMs: number } | null {
      const sample = pods.get(id);
      if (sample === undefined) return null;
      return { usage: sample.usage, ageMs: clock.monotonicMs() - sample.atMs };
    },

    /** Throws `upstream_unavailable` until the first sample. */
    host(): HostMetrics {
      if (host === null || gpus === null) {
        throw new ApiError('upstream_unavailable', 'The host has not been measured yet');
      }
      const { devices, error } = gpus.reading;
      const age_ms = ageOf(host.atMs);
      const gpu_error = error?.slice(0, MAX_TEXT_CHARS) ?? null;
      const { disks: _, ...figures } = host.figures;
      return { ...figures, age_ms, simulated, gpus: [...devices], gpu_error };
    },

    /** Throws `pod_not_found`. */
    pod(id: string): PodMetrics {
      const row = records.get(id);
      if (row === null || row.phase === 'removed') {
        throw new ApiError('pod_not_found', 'There is no such pod on this host');
      }
      const sample = pods.get(id);
      const { limits } = specOf(row);
      return {
        simulated,
        age_ms: sample === undefined ? null : ageOf(sample.atMs),
        interval_seconds: SAMPLE_INTERVAL_MS / MS_PER_SECOND,
        cpu: { used_cores: sample?.usedCores ?? null, limit_cores: limits.cpu_cores },
        memory: {
          used_bytes: sample?.usage?.memoryBytes ?? null,
          limit_bytes: limits.memory_bytes,
        },
        idle_ms:
          sample === undefined || sample.idleSinceMs === null
            ? null
            : Math.round(sample.atMs - sample.idleSinceMs),
        gpus: [...(sample?.gpus ?? [])],
        history: (sample?.history ?? []).map(({ atMs, ...point }) => ({
          age_ms: ageOf(atMs),
          ...point,
        })),
      };
    },
  };
}
