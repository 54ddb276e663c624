/** Section about starts of pods: the time until they run, and the rentals that never ran, by the fault of their host. Pure. */

import { looksUntil } from '../../actors/looks.ts';
import type { FaultEffect, Report } from '../report.ts';
import { ascending, quantile, sum } from '../statistics.ts';
import { type Bar, barChart } from './bars.ts';
import type { Section, Table } from './section.ts';
import { counted, duration, percent, whole } from './text.ts';
import { faultWords } from './words.ts';

type Sources = Pick<Report, 'rentals' | 'faults' | 'scenario'>;

const SECOND_MS = 1_000;
const SLOW = 'slow';

export function startSection(report: Sources): Section {
  const { rentals, faults } = report;
  const seconds = ascending(rentals.start_seconds);
  const failed = sum(Object.values(rentals.failed_starts));
  const bars = startBars(seconds);
  return {
    id: 'start',
    finding: findingOf(seconds, { failed, onSlowHosts: failedIn(faults, SLOW) }),
    notes: [
      'Time from the rental until its renter observed that the pod ran. Renters request the state 15, 45, 105, 225, 465 and 765 seconds after the rental, and then every 5 minutes. A pod therefore started between two of these times, and only these times occur as values. Starts also wait for the pod sync, as the settings at the end state.',
      ...(failed === 0 ? [] : [failureNote(report, failed)]),
    ],
    plot: bars.length === 0 ? null : barChart(bars, { label: 'pods', format: whole }),
    legend: [],
    ...(failed === 0
      ? {}
      : {
          openTables: [{ caption: 'Rentals that never ran', table: failureTable(faults, failed) }],
        }),
    table: {
      head: ['Ran', 'Pods', 'Share of the pods'],
      rows: bars.map(({ label, value }) => [label, whole(value), percent(value / seconds.length)]),
    },
  };
}

type Failures = { failed: number; onSlowHosts: number };

/** `seconds`: ascending. */
function findingOf(seconds: readonly number[], { failed, onSlowHosts }: Failures): string {
  const [median, slow] = [quantile(seconds, 0.5), quantile(seconds, 0.95)];
  if (median === null || slow === null) return 'No rental ran';
  const ran =
    median === slow
      ? `At least 95 % of the pods ran within ${whole(slow)} s`
      : `Half of the pods ran within ${whole(median)} s, 95 % within ${whole(slow)} s`;
  const never = `${ran}; ${counted(failed, 'rental')} never ran`;
  if (onSlowHosts === 0) return never;
  if (failed === 1) return `${never}, on a host that started pods slowly`;
  const part = onSlowHosts === failed ? 'all' : `${whole(onSlowHosts)} of them`;
  return `${never}, ${part} on hosts that started pods slowly`;
}

const failedIn = (faults: readonly FaultEffect[], kind: string): number =>
  sum(faults.filter((each) => each.kind === kind).map((each) => each.failed_starts));

/** States the launch limit, and why a host that starts pods slowly exceeds it. */
function failureNote({ rentals, faults, scenario }: Sources, failed: number): string {
  const limit = `The central API gives up a start after ${duration(rentals.start_limit_seconds)}`;
  const onSlowHosts = failedIn(faults, SLOW);
  if (onSlowHosts === 0) return `${limit}.`;
  const factor = rentals.slow_start_factor;
  const means = ascending(scenario.supply.classes.map((each) => each.start_seconds));
  const [least = 0, most = 0] = [means[0], means.at(-1)].map((each) => factor * (each ?? 0));
  const range =
    least === most ? duration(most) : `${duration(least)} to ${duration(most)}, by GPU model`;
  return `${limit}. Of ${counted(failed, 'rental')} that never ran, ${whole(onSlowHosts)} began on hosts with the fault “${faultWords(SLOW)}”: a start takes ${whole(factor)} times as long there, on average ${range}, so most starts exceed the limit.`;
}

function failureTable(faults: readonly FaultEffect[], failed: number): Table {
  const kinds = [...new Set(faults.map(({ kind }) => kind))]
    .map((kind) => ({ fault: faultWords(kind), count: failedIn(faults, kind) }))
    .filter(({ count }) => count > 0)
    .toSorted((a, b) => b.count - a.count);
  const others = failed - sum(kinds.map(({ count }) => count));
  const rows = [...kinds, ...(others > 0 ? [{ fault: 'no fault', count: others }] : [])];
  return {
    head: ['Fault of the host', 'Rentals', 'Share'],
    rows: rows.map(({ fault, count }) => [fault, whole(count), percent(count / failed)]),
  };
}

/** Counts the pods between two requests of their renters. `seconds`: ascending. */
function startBars(seconds: readonly number[]): Bar[] {
  const looks = looksUntil((seconds.at(-1) ?? 0) * SECOND_MS).map((ms) => ms / SECOND_MS);
  const bars = looks.map((to, index) => {
    const from = looks[index - 1] ?? 0;
    const value = seconds.filter((each) => each > from && each <= to).length;
    return { label: `after more than ${whole(from)} s and within ${whole(to)} s`, value };
  });
  const first = bars.findIndex(({ value }) => value > 0);
  return first === -1 ? [] : bars.slice(first);
}
