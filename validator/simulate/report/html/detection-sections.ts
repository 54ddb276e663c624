/** Sections about the validator's findings: cheats with their delay, and failed checks of honest hosts. Pure. */
import type { DetectedCheat, ExpectedDetection, Report } from '../report.ts';
import { quantile, sum } from '../statistics.ts';
import { barChart } from './bars.ts';
import type { Section, Table } from './section.ts';
import { counted, duration, number, percent, whole } from './text.ts';
import { cheatWords, checkWords, faultWords } from './words.ts';

const HOUR_S = 3_600;

export function detectionSections({
  detection,
  weights,
}: Pick<Report, 'detection' | 'weights'>): Section[] {
  return [cheatsFound(detection.cheats, weights), falsePositives(detection.honest)];
}

function cheatsFound(cheats: readonly DetectedCheat[], weights: Report['weights']): Section {
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
  const missed = hosts - found;
  const findable = sum(cheats.map(findableOf));
  const others =
    missed === 0
      ? ''
      : `; of ${counted(missed, 'host')} that ${missed === 1 ? 'was' : 'were'} not found, inspections could have found ${findable === 0 ? 'none' : whole(findable)} in this time`;
  return {
    id: 'detection',
    finding:
      cheats.length === 0
        ? 'No host of this run cheated'
        : `${found} of ${counted(hosts, 'cheating host')} ${hosts === 1 ? 'was' : 'were'} found${latest}${others}`,
    notes: [
      'Median time from the enrolment of a host until its first failed check that no fault explains, by cheat; of two hosts, the time of the one that was found first. Cheats that were never found have no bar. A host counts as found once a check fails it.',
    ],
    plot:
      slowest.length === 0
        ? null
        : barChart(
            slowest.map(({ cheat, median }) => ({ label: cheatWords(cheat), value: median })),
            { label: 'hours until the first failed check', format: number },
          ),
    legend: [],
    ...(cheats.length === 0
      ? {}
      : { openTables: [{ caption: CHEATS_CAPTION, table: explainedCheats(cheats, weights) }] }),
    table: {
      head: [
        'A host that …',
        'Cheat',
        'Hosts',
        'Found',
        'Median delay',
        'Longest delay',
        'Found because',
        'Code',
      ],
      rows: cheats.map(({ cheat, hosts, found: count, delays_hours: delays, reasons }) => [
        cheatWords(cheat),
        cheat,
        whole(hosts),
        whole(count),
        count === 0 ? '-' : duration((quantile(delays, 0.5) ?? 0) * HOUR_S),
        count === 0 ? '-' : duration((delays.at(-1) ?? 0) * HOUR_S),
        Object.keys(reasons).map(checkWords).join('; '),
        Object.keys(reasons).join('; '),
      ]),
    },
  };
}

const CHEATS_CAPTION =
  'Cheats of this run, with what inspections of such a host should find under its policies';

/** One line for each cheat: what the host does, what detects it, and why hosts were not found. */
function explainedCheats(cheats: readonly DetectedCheat[], weights: Report['weights']): Table {
  return {
    head: [
      'A host that …',
      'What detects it',
      'Inspections until then, at least',
      'Not found',
      'Share of the hosts’ weight',
    ],
    rows: cheats.map((each) => [
      cheatWords(each.cheat),
      detectedBy(each.expected),
      each.expected.inspections === null ? '-' : whole(each.expected.inspections),
      missedText(each),
      percent(sum(weights.filter(({ cheat }) => cheat === each.cheat).map(weightOf))),
    ]),
  };
}

const weightOf = ({ weight_share: share }: Report['weights'][number]): number => share;

function detectedBy({ outcome, checks }: ExpectedDetection): string {
  if (outcome === 'passes') return 'no check of this policy';
  const names = checks.map((check) => {
    const [id = '', reason = ''] = check.split(' ');
    return `${id} (${checkWords(reason)})`;
  });
  const by = `check${names.length === 1 ? '' : 's'} ${names.join(', ')}`;
  if (outcome === 'fails') return by;
  return outcome === 'no weight'
    ? `${by}: should take away its weight, and does not fail it`
    : `${by}: records it, without effect`;
}

/** Number of hosts that inspections should have failed, although they were not found. */
function findableOf({ expected, missed_inspections: missed }: DetectedCheat): number {
  const needed = expected.inspections;
  if (expected.outcome !== 'fails' || needed === null) return 0;
  return missed.filter((inspections) => inspections >= needed).length;
}

function missedText(cheat: DetectedCheat): string {
  const { expected, missed_inspections: missed } = cheat;
  if (missed.length === 0) return '-';
  const number = whole(missed.length);
  if (expected.outcome !== 'fails') return `${number}: no check fails it, so it cannot be found`;
  const most = missed.reduce((a, b) => Math.max(a, b));
  const had = `with at most ${counted(most, 'inspection')} each`;
  return findableOf(cheat) === 0
    ? `${number}: had too few inspections, ${had}`
    : `${number}: could have been found, ${had}`;
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
      head: ['Checks of honest hosts', 'Code', 'Number'],
      rows: [
        ['all', '-', whole(honest.checks)],
        ...Object.entries(honest.failed_by_fault).map(([kind, count]) => [
          `failed, because of a fault: ${faultWords(kind)}`,
          '-',
          whole(count),
        ]),
        ...Object.entries(honest.failed_in_service_fault).map(([reason, count]) => [
          `failed, because of a fault of a service: ${serviceWords(reason)}`,
          codeOf(reason),
          whole(count),
        ]),
        ...Object.entries(honest.failed_without_fault).map(([reason, count]) => [
          `false positive: ${checkWords(reason)}`,
          reason,
          whole(count),
        ]),
      ],
    },
  };
}

/** `reason`: kind of the fault and code of the check, as the report has them. */
function serviceWords(reason: string): string {
  const [kind = ''] = reason.split(': ');
  return `${faultWords(kind)}; ${checkWords(codeOf(reason))}`;
}

const codeOf = (reason: string): string => reason.split(': ')[1] ?? '';
