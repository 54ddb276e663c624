/** Samples of an agent in memory, as its route for the history of metrics reports them. */
import {
  MAX_PAGE_TICKS,
  MAX_RETAINED_TICKS,
  rowLength,
  SAMPLED_FIGURES,
  SAMPLED_GPU_FIGURES,
  type SampleHistory,
  type SampleHistoryQuery,
  type SampleSeries,
} from '#shared/api/agent/metric-history.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import type { ManualClock } from '../manual-clock.ts';

const TICK_MS = 10_000;

export type FakeGpu = Partial<Record<(typeof SAMPLED_GPU_FIGURES)[number], number | null>>;
export type FakeSeries = Partial<Record<(typeof SAMPLED_FIGURES)[number], number | null>> & {
  /** Absent: the host. */
  podId?: string;
  gpus?: Record<string, FakeGpu>;
};

export type FakeSamples = ReturnType<typeof createFakeSamples>;

/** The agent's clock begins with the first sample, and has no relation to the central API's. */
export function createFakeSamples(clock: ManualClock) {
  let epoch = systemRandom.uuid();
  let beganMs = clock.now();
  let ticks: { tick: number; series: readonly FakeSeries[] }[] = [];
  const tickNow = () => Math.round((clock.now() - beganMs) / TICK_MS);

  return {
    /** Adds a sample at the present time. */
    sample(...series: readonly FakeSeries[]): void {
      ticks.push({ tick: tickNow(), series });
      ticks = ticks.filter(({ tick }) => tick > tickNow() - MAX_RETAINED_TICKS);
    },

    /** Advances the clock by `count` intervals and samples at the beginning of each. */
    async run(count: number, seriesAt: (index: number) => readonly FakeSeries[]): Promise<void> {
      for (let index = 0; index < count; index += 1) {
        this.sample(...seriesAt(index));
        await clock.advance(TICK_MS);
      }
    },

    /** Loses all samples, as a restart of the agent does. */
    restart(): void {
      epoch = systemRandom.uuid();
      beganMs = clock.now();
      ticks = [];
    },

    answer({ epoch: known, after = -1 }: SampleHistoryQuery): SampleHistory {
      const wanted = ticks.filter(({ tick }) => known !== epoch || tick > after);
      const page = wanted.slice(0, MAX_PAGE_TICKS);
      const newest = ticks.at(-1)?.tick;
      const age_ms = newest === undefined ? 0 : clock.now() - beganMs - newest * TICK_MS;
      return {
        epoch,
        newest: newest === undefined ? null : { tick: newest, age_ms },
        more: wanted.length > page.length,
        series: merged(
          page.flatMap(({ tick, series }) => series.map((each) => wireSeries(tick, each))),
        ),
      };
    },
  };
}

function wireSeries(tick: number, { podId, gpus = {}, ...figures }: FakeSeries): SampleSeries {
  const values = [
    ...SAMPLED_FIGURES.map((name) => figures[name] ?? null),
    ...Object.values(gpus).flatMap((gpu) => SAMPLED_GPU_FIGURES.map((name) => gpu[name] ?? null)),
  ];
  const uuids = Object.keys(gpus);
  if (values.length !== rowLength(uuids.length)) throw new Error('a row of the wrong length');
  return { pod_id: podId ?? null, gpus: uuids, rows: [{ tick, values }] };
}

/** Joins the rows of each pod, and of the host. */
function merged(all: readonly SampleSeries[]): SampleSeries[] {
  const found = new Map<string, SampleSeries>();
  for (const { rows, ...series } of all) {
    const key = JSON.stringify(series);
    const known = found.get(key) ?? { ...series, rows: [] };
    known.rows.push(...rows);
    found.set(key, known);
  }
  return [...found.values()];
}
