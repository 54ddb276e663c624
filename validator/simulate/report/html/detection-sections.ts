/** Sections about the validator's findings: cheats with their delay, and failed checks of honest hosts. Pure. */
import type { DetectedCheat, Report } from '../report.ts';
import { quantile, sum } from '../statistics.ts';
import { barChart } from './bars.ts';
import type { Section } from './section.ts';
import { counted, duration, number, percent, whole } from './text.ts';
import { cheatWords, checkWords, faultWords } from './words.ts';

const HOUR_S = 3_600;

export function detectionSections({ detection }: Pick<Report, 'detection'>): Section[] {
  return [cheatsFound(detection.cheats), falsePositives(detection.honest)];
}

function cheatsFound(cheats: readonly DetectedCheat[]): Section {
  const slowest = cheats
    .flatMap(({ cheat, delays_hours: delays }) => {
      const median = quantile(delays, 0.5);
      return median === null ? [] : [{ cheat, median, longest: delays.at(-1) ?? median }];
    })
    .toSorted((a, b) => b.longest - a.longest);
  const hosts = sum(cheats.map((each) => each.hosts));
  const found = sum(cheats.map((each) => each.found));
  const [last] = slowest;
  const latest =
    last === undefined
      ? ''
      : `; the last was a host that ${cheatWords(last.cheat)}, after ${duration(last.longest * HOUR_S)}`;
  return {
    id: 'detection',
    finding:
      cheats.length === 0
        ? 'No host of this run cheated'
        : `${found} of ${counted(hosts, 'cheating host')} ${hosts === 1 ? 'was' : 'were'} found${latest}`,
    notes: [
      'Median time from the enrolment of a host until its first failed check that no fault explains, by cheat; of two hosts, the time of the one that was found first. Cheats that were never found have no bar.',
    ],
    plot:
      slowest.length === 0
        ? null
        : barChart(
            slowest.map(({ cheat, median }) => ({ label: cheatWords(cheat), value: median })),
            { label: 'hours until the first failed check', format: number },
          ),
    legend: [],
    table: {
      head: ['A host that …', 'Hosts', 'Found', 'Median delay', 'Longest delay', 'Found because'],
      rows: cheats.map(({ cheat, hosts, found: count, delays_hours: delays, reasons }) => [
        cheatWords(cheat),
        whole(hosts),
        whole(count),
        count === 0 ? '-' : duration((quantile(delays, 0.5) ?? 0) * HOUR_S),
        count === 0 ? '-' : duration((delays.at(-1) ?? 0) * HOUR_S),
        Object.keys(reasons).map(checkWords).join(', '),
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
        ? `No false positive among ${counted(honest.checks, 'check')} of honest hosts: each failed check followed a fault of the host or of a service`
        : `${percent(wrong / honest.checks)} of the ${counted(honest.checks, 'check')} of honest hosts are false positives: they failed without a fault of the host or of a service`,
    notes: [
      'Honest hosts are those without a cheat. A failed check counts as a consequence of a fault of the host or of a cut of its region until six hours after the repair, and as a consequence of a fault of a service (central API, validator or image registry down, or a jump of the clock) until one hour after it. All other failed checks are false positives. A host that failed is inspected again soon, so one outage fails many checks.',
    ],
    plot:
      wrong === 0
        ? null
        : barChart(
            Object.entries(honest.failed_without_fault).map(([label, value]) => ({
              label: checkWords(label),
              value,
            })),
            { label: 'failed checks', format: whole },
          ),
    legend: [],
    table: {
      head: ['Checks of honest hosts', 'Number'],
      rows: [
        ['all', whole(honest.checks)],
        ...Object.entries(honest.failed_by_fault).map(([kind, count]) => [
          `failed, because of a fault: ${faultWords(kind)}`,
          whole(count),
        ]),
        ...Object.entries(honest.failed_in_service_fault).map(([reason, count]) => [
          `failed, because of a fault of a service: ${serviceWords(reason)}`,
          whole(count),
        ]),
        ...Object.entries(honest.failed_without_fault).map(([reason, count]) => [
          `false positive: ${checkWords(reason)}`,
          whole(count),
        ]),
      ],
    },
  };
}

/** `reason`: kind of the fault and code of the check, as the report has them. */
function serviceWords(reason: string): string {
  const [kind = '', code = ''] = reason.split(': ');
  return `${faultWords(kind)}; ${checkWords(code)}`;
}
