/** The retained samples of a pod or node in three resolutions, and the code that adds new samples. Pure. */
import { SAMPLED_FIGURES, type SampleSeries } from '#shared/api/agent/metric-history.ts';
import { type Column, columnsFor, PER_GPU, STATISTICS, SUMMARY_COLUMNS } from './figures.ts';
import {
  addRow,
  aggregated,
  arranged,
  emptyTier,
  joined,
  rolledUp,
  rowsBefore,
  rowsFrom,
  type Tier,
} from './tier.ts';

/** Resolutions in seconds, and the period for which each is retained. */
export const RESOLUTIONS = [
  { seconds: 10, retainedSeconds: 15 * 60 },
  { seconds: 60, retainedSeconds: 3 * 3_600 },
  { seconds: 600, retainedSeconds: 30 * 24 * 3_600 },
] as const;
export type Resolution = (typeof RESOLUTIONS)[number]['seconds'];

const SAMPLE_SECONDS = 10;
const MINUTE_ROWS = 60 / SAMPLE_SECONDS;
const TEN_MINUTE_ROWS = 600 / SAMPLE_SECONDS;
const SAMPLE_SPAN = (15 * 60) / SAMPLE_SECONDS;
const MINUTE_SPAN = 3 * 60;
export const TEN_MINUTE_SPAN = 30 * 24 * 6;
/** Maximum number of GPUs with separate columns. Further GPUs count only in the summary of all GPUs. */
const MAX_GPUS = 16;

/** The recent part of the history, which every collection rewrites. */
export type Recent = {
  /** UUIDs of the GPUs that have columns, in the order of the columns. */
  gpus: readonly string[];
  /** Rows of 10 seconds and of a minute. */
  samples: Tier;
  minutes: Tier;
  /** Rows of 10 minutes that the archive does not contain yet. */
  tens: Tier;
};

/** The archive: rows of 10 minutes, extended every 8 to 16 hours. */
export type Archive = { gpus: readonly string[]; tens: Tier };

export const NOTHING_RECENT: Recent = {
  gpus: [],
  samples: emptyTier(0),
  minutes: emptyTier(0),
  tens: emptyTier(0),
};
export const NOTHING_ARCHIVED: Archive = { gpus: [], tens: emptyTier(0) };

/** `toAt` converts an agent's tick to the number of the 10-second interval since the epoch. */
export type NewSamples = { series: SampleSeries; toAt: (tick: number) => number };

/**
 * Adds samples that are newer than the newest stored sample; other samples are duplicates or late, and are ignored.
 * Rows of a minute and of ten minutes are computed again from their samples.
 */
export function withSamples(before: Recent, { series, toAt }: NewSamples): Recent {
  const lastAt = before.samples.at.at(-1) ?? Number.NEGATIVE_INFINITY;
  const rows = series.rows
    .map(({ tick, values }) => ({ at: toAt(tick), values }))
    .filter(({ at }) => at > lastAt);
  const [first] = rows;
  if (first === undefined) return before;
  const { recent, places } = withGpus(before, series.gpus);
  const { gpus } = recent;
  const columns = columnsFor(gpus.length);
  const samples: Tier = {
    at: [...recent.samples.at],
    samples: [...recent.samples.samples],
    cells: recent.samples.cells.map((column) => [...column]),
  };
  let newestAt = lastAt;
  for (const { at, values } of rows) {
    if (at <= newestAt) continue;
    newestAt = at;
    addRow(samples, at, codesOf(values, places, columns));
  }
  const rolled = (size: number) =>
    rolledUp(rowsFrom(samples, Math.floor(first.at / size) * size), size, gpus.length);
  const minute = Math.floor(newestAt / MINUTE_ROWS);
  return {
    gpus,
    samples: rowsFrom(samples, newestAt - SAMPLE_SPAN + 1),
    minutes: rowsFrom(joined(recent.minutes, rolled(MINUTE_ROWS)), minute - MINUTE_SPAN + 1),
    tens: joined(recent.tens, rolled(TEN_MINUTE_ROWS)),
  };
}

/** Adds columns for new GPUs. Above the limit, GPUs that the node no longer reports lose their columns first. */
function withGpus(
  { samples, minutes, tens, ...before }: Recent,
  uuids: readonly string[],
): { recent: Recent; places: (number | null)[] } {
  const known = [...new Set([...before.gpus, ...uuids])];
  const gpus = known.length <= MAX_GPUS ? known : unionOf(uuids, before.gpus, MAX_GPUS);
  const widened = (tier: Tier) => arranged(tier, before.gpus, gpus);
  return {
    recent: { gpus, samples: widened(samples), minutes: widened(minutes), tens: widened(tens) },
    places: uuids.map((uuid) => (gpus.includes(uuid) ? gpus.indexOf(uuid) : null)),
  };
}

function unionOf(first: readonly string[], second: readonly string[], limit: number): string[] {
  return [...new Set([...first, ...second])].slice(0, limit);
}

/** Converts a row of figures to codes. The summary is over all GPUs of the row, including GPUs without columns. */
function codesOf(
  values: readonly (number | null)[],
  places: readonly (number | null)[],
  columns: readonly Column[],
): number[] {
  const figures = SAMPLED_FIGURES.length;
  const codes: number[] = Array.from({ length: columns.length }, () => 0);
  const codeOf = (index: number, column: number): number => {
    const value = values[index] ?? null;
    return value === null ? 0 : (columns[column]?.scale.encode(value) ?? 0);
  };
  for (let column = 0; column < SUMMARY_COLUMNS; column += 1) {
    const figure = Math.floor(column / STATISTICS.length);
    if (figure < figures) codes[column] = codeOf(figure, column);
  }
  for (let figure = 0; figure < PER_GPU; figure += 1) {
    const first = (figures + figure) * STATISTICS.length;
    const ofGpus = places.map((_, gpu) => codeOf(figures + gpu * PER_GPU + figure, first));
    for (let column = first; column < first + STATISTICS.length; column += 1) {
      const definition = columns[column];
      if (definition !== undefined)
        codes[column] = aggregated(definition, ofGpus, 0, ofGpus.length);
    }
    places.forEach((place, gpu) => {
      if (place !== null) codes[SUMMARY_COLUMNS + place * PER_GPU + figure] = ofGpus[gpu] ?? 0;
    });
  }
  return codes;
}

/** Number of finished rows of ten minutes that the archive does not contain yet. */
export function unarchivedRows({ tens }: Recent): number {
  return Math.max(0, tens.at.length - 1);
}

/** Moves finished rows of ten minutes to the archive and drops those older than 30 days. */
export function archived(recent: Recent, archive: Archive): { recent: Recent; archive: Archive } {
  const openAt = recent.tens.at.at(-1) ?? 0;
  const { gpus, tens } = allTens(
    { ...recent, tens: rowsBefore(recent.tens, openAt) },
    archive,
    MAX_GPUS,
  );
  return {
    recent: { ...recent, tens: rowsFrom(recent.tens, openAt) },
    archive: { gpus, tens: rowsFrom(tens, openAt - TEN_MINUTE_SPAN + 1) },
  };
}

/** Returns the rows of ten minutes of both parts, with the columns of at most `maxGpus` GPUs, present GPUs first. */
export function allTens(recent: Recent, archive: Archive, maxGpus = 2 * MAX_GPUS): Archive {
  const gpus = unionOf(recent.gpus, archive.gpus, maxGpus);
  const older = arranged(archive.tens, archive.gpus, gpus);
  return { gpus, tens: joined(older, arranged(recent.tens, recent.gpus, gpus)) };
}
