/**
 * Samples of the last hour, of the host and of pods that ran, in memory. The central API collects them every few
 * minutes for the history of metrics, so an interruption of up to an hour leaves no gap in that history.
 */
import {
  MAX_PAGE_TICKS,
  MAX_RETAINED_TICKS,
  MAX_SERIES,
  rowLength,
  type SampleHistory,
  type SampleHistoryQuery,
  type SampleSeries,
} from '#shared/api/agent/metric-history.ts';
import { SAMPLE_INTERVAL_MS } from '#shared/api/agent/metrics.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { PodRecords } from '../pods/pod-records.ts';
import { specOf } from '../pods/pod-row.ts';
import {
  type Counters,
  hostRow,
  podRow,
  type SeriesSample,
  sampledGpus,
  sampleRow,
} from './sample-row.ts';
import type { Samples } from './samples.ts';

/** Rows retained at most, over all series; about 5 MB with one GPU per pod. Above it the oldest ticks are dropped. */
const MAX_ROWS = 20_000;
/** Time by which a timer may fire early; a sample that is taken this shortly before a tick counts for that tick. */
const EARLY_MS = 50;

type Retained = {
  podId: string | null;
  gpus: readonly string[];
  /** NaN for an unknown figure. */
  values: Float32Array;
};
type RetainedTick = { tick: number; series: readonly Retained[] };

export type SampleHistories = ReturnType<typeof createSampleHistory>;

/** `epoch` is a new id for each run of the agent. */
export function createSampleHistory(deps: {
  clock: Clock;
  epoch: string;
  samples: Pick<Samples, 'gpus' | 'hostFigures' | 'lastOf'>;
  records: Pick<PodRecords, 'list'>;
  writtenBytes(podId: string): number | null;
}) {
  const { clock, epoch, samples, records } = deps;
  let ticks: RetainedTick[] = [];
  let rows = 0;
  let recordedMs = Number.NEGATIVE_INFINITY;
  /** Counters at the previous tick, by pod. */
  let counters = new Map<string, Counters>();

  function hostSeries(): SeriesSample | null {
    const gpus = samples.gpus();
    if (gpus === null) return null;
    const { reading } = gpus;
    const host = samples.hostFigures();
    const isNew = host !== null && clock.monotonicMs() - host.ageMs > recordedMs;
    const uuids = reading.devices.map(({ uuid }) => uuid);
    return {
      podId: null,
      ...hostRow(isNew ? host.figures : null),
      gpus: sampledGpus(uuids, reading),
    };
  }

  /** Only pods that were sampled since the previous tick. */
  function podSeries(): SeriesSample[] {
    const reading = samples.gpus()?.reading;
    if (reading === undefined) return [];
    const before = counters;
    counters = new Map();
    return records.list().flatMap((row) => {
      const sample = samples.lastOf(row.id);
      if (row.phase === 'removed' || sample === null || sample.atMs <= recordedMs) return [];
      const { usage, atMs, containerId } = sample;
      const { network = null, blockIo = null } = usage ?? {};
      counters.set(row.id, { atMs, containerId, network, blockIo });
      const { limits, gpu_uuids: uuids } = specOf(row);
      const figures = podRow(before.get(row.id) ?? null, sample, {
        limitCores: limits.cpu_cores,
        limitBytes: limits.memory_bytes,
        writtenBytes: deps.writtenBytes(row.id),
      });
      return [{ podId: row.id, ...figures, gpus: sampledGpus(uuids, reading) }];
    });
  }

  function drop(isOld: (tick: RetainedTick) => boolean): void {
    const first = ticks.findIndex((each) => !isOld(each));
    const dropped = ticks.slice(0, first === -1 ? ticks.length : first);
    rows -= dropped.reduce((sum, { series }) => sum + series.length, 0);
    ticks = ticks.slice(dropped.length);
  }

  return {
    /** Adds the samples that were taken since the last call. A second call in the same tick has no effect. */
    record(): void {
      const nowMs = clock.monotonicMs();
      const tick = tickAt(nowMs);
      if (tick <= (ticks.at(-1)?.tick ?? -1)) return;
      const found = [hostSeries(), ...podSeries()].filter((each) => each !== null);
      recordedMs = nowMs;
      const series = found.slice(0, MAX_SERIES).map(retained);
      ticks.push({ tick, series });
      rows += series.length;
      drop((each) => each.tick <= tick - MAX_RETAINED_TICKS);
      while (rows > MAX_ROWS && ticks.length > 1) drop((each) => each.tick === ticks[0]?.tick);
    },

    /** Returns the oldest MAX_PAGE_TICKS ticks that the caller does not have. */
    read({ epoch: known, after = -1 }: SampleHistoryQuery): SampleHistory {
      const wanted = ticks.filter(({ tick }) => known !== epoch || tick > after);
      const page = wanted.slice(0, MAX_PAGE_TICKS);
      const last = ticks.at(-1);
      return {
        epoch,
        newest:
          last === undefined
            ? null
            : { tick: last.tick, age_ms: ageOf(last.tick, clock.monotonicMs()) },
        more: wanted.length > page.length,
        series: seriesOf(page),
      };
    },
  };
}

/**
 * Returns the pause before the next sample. Samples are taken at whole multiples of the interval, so that no tick is
 * left out.
 */
export function pauseToNextTick(monotonicMs: number): number {
  const sinceTickMs = (monotonicMs + EARLY_MS) % SAMPLE_INTERVAL_MS;
  return SAMPLE_INTERVAL_MS - sinceTickMs + EARLY_MS;
}

function tickAt(monotonicMs: number): number {
  return Math.round(monotonicMs / SAMPLE_INTERVAL_MS);
}

function ageOf(tick: number, monotonicMs: number): number {
  const ageMs = Math.round(monotonicMs - tick * SAMPLE_INTERVAL_MS);
  return Math.min(Math.max(0, ageMs), (MAX_RETAINED_TICKS + 1) * SAMPLE_INTERVAL_MS);
}

function retained(sample: SeriesSample): Retained {
  const row = sampleRow(sample);
  const values = new Float32Array(row.length);
  row.forEach((value, index) => {
    values[index] = value ?? Number.NaN;
  });
  return { podId: sample.podId, gpus: sample.gpus.map(({ uuid }) => uuid), values };
}

/** Returns the series of a page. If a host's or pod's GPUs change within the page, another series begins. */
function seriesOf(page: readonly RetainedTick[]): SampleSeries[] {
  const found = new Map<string, SampleSeries>();
  for (const { tick, series } of page) {
    for (const { podId, gpus, values } of series) {
      const key = `${podId} ${gpus.join(' ')}`;
      const known = found.get(key) ?? { pod_id: podId, gpus: [...gpus], rows: [] };
      if (!found.has(key) && found.size >= MAX_SERIES) continue;
      found.set(key, known);
      known.rows.push({
        tick,
        values: Array.from(values.subarray(0, rowLength(gpus.length)), figure),
      });
    }
  }
  return [...found.values()];
}

function figure(value: number): number | null {
  return Number.isNaN(value) ? null : Math.round(value * 10) / 10;
}
