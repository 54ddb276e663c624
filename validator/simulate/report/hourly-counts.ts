/** Requests, rentals and interruptions of each hour. Pure. */
import type { RegionAtTime } from './market-sample.ts';
import type { RentalCounts } from './rental-tally.ts';
import type { Report } from './report.ts';

type Sources = {
  /** Samples at the end of each hour. */
  regions: readonly RegionAtTime[];
  counts: Pick<RentalCounts, 'rented' | 'refusedMs' | 'interruptions'>;
  regionOf(executor: string): string;
  /** Hours after the start. */
  hoursAt(ms: number): number;
};

/** Counts what happened in the hour before each sample. */
export function countByHour({
  regions,
  counts,
  regionOf,
  hoursAt,
}: Sources): Pick<Report, 'regions' | 'requests'> {
  /** Number of the hour in which a time is, from 1. */
  const hourOf = (ms: number): number => Math.max(1, Math.ceil(hoursAt(ms)));
  const placed = (ms: number, executor: string): string => `${hourOf(ms)} ${regionOf(executor)}`;
  const accepted = tallied(counts.rented.map(({ atMs, executor }) => placed(atMs, executor)));
  const interrupted = tallied(
    counts.interruptions.map(({ at_ms: atMs, executor }) => placed(atMs, executor)),
  );
  const acceptedIn = tallied(counts.rented.map(({ atMs }) => hourOf(atMs)));
  const refusedIn = tallied(counts.refusedMs.map(hourOf));
  const hours = [...new Set(regions.map(({ at_hours: at }) => at))];
  return {
    regions: regions.map((sample) => {
      const key = `${Math.ceil(sample.at_hours)} ${sample.region}`;
      return {
        ...sample,
        accepted: accepted.get(key) ?? 0,
        interruptions: interrupted.get(key) ?? 0,
      };
    }),
    requests: hours.map((at) => {
      const hour = Math.ceil(at);
      const refused = refusedIn.get(hour) ?? 0;
      return { at_hours: at, requested: (acceptedIn.get(hour) ?? 0) + refused, refused };
    }),
  };
}

function tallied<Key>(keys: readonly Key[]): ReadonlyMap<Key, number> {
  const counts = new Map<Key, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}
