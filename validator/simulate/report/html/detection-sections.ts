/** Sections about the validator's findings: cheats with their delay, and failed checks of honest hosts. Pure. */
import type { DetectedCheat, Report } from '../report.ts';
import { quantile, sum } from '../statistics.ts';
import type { Section } from './section.ts';
import { barChart } from './svg.ts';
import { counted, duration, number, percent } from './text.ts';

const HOUR_S = 3_600;

export function detectionSections({ detection }: Pick<Report, 'detection'>): Section[] {
  return [cheatsFound(detection.cheats), falsePositives(detection.honest)];
}

function cheatsFound(cheats: readonly DetectedCheat[]): Section {
  const slowest = cheats
    .flatMap(({ cheat, delays_hours: delays }) => {
      const median = quantile(delays, 0.5);
      return median === null ? [] : [{ cheat, median }];
    })
    .toSorted((a, b) => b.median - a.median);
  const hosts = counted(sum(cheats.map((each) => each.hosts)), 'cheating host');
  const found = sum(cheats.map((each) => each.found));
  const [last] = slowest;
  const latest =
    last === undefined ? '' : `; ${last.cheat} last, after ${duration(last.median * HOUR_S)}`;
  return {
    id: 'detection',
    finding:
      cheats.length === 0
        ? 'No host of this scenario cheats'
        : `${found} of ${hosts} were found${latest}`,
    note: 'Median time from the first day of a host until its first failed check, by cheat. Cheats that were never found have no bar.',
    svg:
      slowest.length === 0
        ? null
        : barChart(
            slowest.map(({ cheat, median }) => ({ label: cheat, value: median })),
            { label: 'hours until the first failed check', format: number },
          ),
    legend: [],
    table: {
      head: ['Cheat', 'Hosts', 'Found', 'Median delay', 'Longest delay', 'Reasons'],
      rows: cheats.map(({ cheat, hosts, found: count, delays_hours: delays, reasons }) => [
        cheat,
        String(hosts),
        String(count),
        count === 0 ? '-' : duration((quantile(delays, 0.5) ?? 0) * HOUR_S),
        count === 0 ? '-' : duration((delays.at(-1) ?? 0) * HOUR_S),
        Object.keys(reasons).join(', '),
      ]),
    },
  };
}

function falsePositives(honest: Report['detection']['honest']): Section {
  const wrong = sum(Object.values(honest.failed_without_fault));
  return {
    id: 'false-positives',
    finding:
      wrong === 0
        ? `None of the ${counted(honest.checks, 'check')} of honest hosts failed without a fault of the host or of a service`
        : `${percent(wrong / honest.checks)} of the ${counted(honest.checks, 'check')} of honest hosts are false positives: they failed without a fault of the host or of a service`,
    note: 'Honest hosts are those without a cheat. A failed check counts as a consequence of a fault of the host (it does not answer, lost a card, or its region is cut off) until six hours after the repair, and as a consequence of a fault of a service (central API, validator or image registry down, or a jump of the clock) until one hour after it. All other failed checks are false positives.',
    svg:
      wrong === 0
        ? null
        : barChart(
            Object.entries(honest.failed_without_fault).map(([label, value]) => ({
              label,
              value,
            })),
            { label: 'failed checks', format: number },
          ),
    legend: [],
    table: {
      head: ['Checks of honest hosts', 'Number'],
      rows: [
        ['all', String(honest.checks)],
        ['failed by a fault of the host', String(honest.failed_in_fault)],
        ...Object.entries(honest.failed_in_service_fault).map(([reason, count]) => [
          `failed by a fault of a service: ${reason}`,
          String(count),
        ]),
        ...Object.entries(honest.failed_without_fault).map(([reason, count]) => [
          `false positive: ${reason}`,
          String(count),
        ]),
      ],
    },
  };
}
