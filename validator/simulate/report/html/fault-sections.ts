/** Sections about faults: where and when, the hosts and pods that they hit, and the party that bears the loss. Pure. */
import type { FaultEffect, Report } from '../report.ts';
import { sum } from '../statistics.ts';
import { aroundFault } from './around-fault.ts';
import { isOfOneHost, nameOf, numberedFaults, timeOf } from './fault-bands.ts';
import type { Section, Table } from './section.ts';
import { counted, number, usd, whole } from './text.ts';
import { faultWords, shortFaultWords } from './words.ts';

type Losses = Pick<
  FaultEffect,
  | 'interruptions'
  | 'failed_starts'
  | 'failed_checks'
  | 'lost_pod_hours'
  | 'provider_loss_usd'
  | 'platform_loss_usd'
  | 'renter_loss_usd'
>;

const BEARS =
  'Time in which the host of a pod does not answer is not charged, and a pod that its host lost is refunded from the last time at which it was healthy. Providers bear their share of both, and the marketplace its fee. Renters bear what they paid for interrupted pods without a refund, and the time without access to their pods.';

const PRICED =
  'Two prices of each model separate the causes of a change. The price that all providers ask changes only when a provider changes its price by its strategy. The offered price is that of the hosts that passed inspection. It also changes when hosts that the fault hit leave its mean or return to it, so the difference between both changes belongs to the fault.';

const INSPECTED =
  'A host counts as one that passed inspection until its next inspection fails, so the number of such hosts falls only in the hours after the beginning of a fault, and rises only in the hours after its end.';

const LOSS_HEAD = [
  'Interrupted pods',
  'Rentals that failed to start',
  'Failed checks',
  'Pod hours without answer',
  'Providers bear',
  'Marketplace bears',
  'Renters bear',
];

export function faultSections(report: Report): Section[] {
  const ofHosts = report.faults.filter(isOfOneHost);
  return [
    ...numberedFaults(report).map(({ number: index, fault }) =>
      faultSection(report, { index, fault }),
    ),
    ofHosts.length === 0 ? noFaults(report) : hostFaults(ofHosts),
  ];
}

function faultSection(
  report: Report,
  { index, fault }: { index: number; fault: FaultEffect },
): Section {
  const around = aroundFault(report, fault);
  return {
    id: `fault-${index}`,
    finding: `Fault ${index}, ${nameOf(fault)}, ${timeOf(fault)}: ${bornBy(fault)}`,
    notes: [
      `${sentence(faultWords(fault.kind))}. ${fault.hosts === 0 ? '' : BEARS}`.trim(),
      ...(around === null || fault.hosts === 0 ? [] : [INSPECTED, PRICED]),
    ],
    plot: null,
    legend: [],
    openTables: [
      { caption: 'Effects of the fault', table: factsOf(fault) },
      ...(around === null ? [] : [{ caption: around.caption, table: around.table }]),
    ],
    table: { head: [], rows: [] },
  };
}

const sentence = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);

function bornBy(fault: FaultEffect): string {
  const { hosts, pods, interruptions } = fault;
  if (hosts === 0) {
    return fault.failed_checks === 0
      ? 'no check failed because of it'
      : `${counted(fault.failed_checks, 'check')} failed because of it`;
  }
  const hit = `it hit ${counted(hosts, 'host')} with ${counted(pods, 'pod')} and interrupted ${interruptions === 0 ? 'none' : whole(interruptions)}`;
  const silent = `${number(fault.lost_pod_hours)} pod hours without an answer were not charged`;
  return `${hit}; ${silent}; providers bear ${usd(fault.provider_loss_usd)}, the marketplace ${usd(fault.platform_loss_usd)} and renters ${usd(fault.renter_loss_usd)} besides the time without access`;
}

function factsOf(fault: FaultEffect): Table {
  const always = [
    ['Fault', nameOf(fault)],
    ['Time', timeOf(fault)],
  ];
  const failedChecks = ['Failed checks', whole(fault.failed_checks)];
  if (fault.hosts === 0) return { head: ['What', 'Value'], rows: [...always, failedChecks] };
  return {
    head: ['What', 'Value'],
    rows: [
      ...always,
      ['Hosts hit', whole(fault.hosts)],
      ['Pods on these hosts during the fault', whole(fault.pods)],
      ['Interrupted pods', whole(fault.interruptions)],
      ['Rentals that failed to start', whole(fault.failed_starts)],
      failedChecks,
      [
        'Time without an answer, not charged',
        `${number(fault.lost_pod_hours)} pod hours, worth ${usd(fault.uncharged_usd)}`,
      ],
      ['Refunded', usd(fault.refunds_usd)],
      ['Providers bear', `${usd(fault.provider_loss_usd)} of income`],
      ['The marketplace bears', `${usd(fault.platform_loss_usd)} of fees`],
      [
        'Renters bear',
        `${usd(fault.renter_loss_usd)} paid for interrupted pods without a refund, and ${number(fault.lost_pod_hours)} pod hours without access, for which they did not pay`,
      ],
    ],
  };
}

function hostFaults(faults: readonly FaultEffect[]): Section {
  const all = added(faults);
  const kinds = [...Map.groupBy(faults, ({ kind }) => kind)];
  return {
    id: 'host-faults',
    finding: `${counted(faults.length, 'fault')} of single hosts interrupted ${all.interruptions === 0 ? 'no pod' : counted(all.interruptions, 'pod')}: providers bear ${usd(all.provider_loss_usd)}, the marketplace ${usd(all.platform_loss_usd)} and renters ${usd(all.renter_loss_usd)}`,
    notes: [
      BEARS,
      'An effect of two faults of a host at a time is counted for the later one. Pod hours without an answer include the time until the marketplace hears from the pod again, so they can exceed the fault.',
    ],
    plot: null,
    legend: [],
    openTables: [
      {
        caption: 'By kind of fault',
        table: {
          head: ['Fault', 'Number', ...LOSS_HEAD],
          rows: [
            ...kinds.map(([kind, group]) => [
              faultWords(kind),
              whole(group.length),
              ...lossCells(added(group)),
            ]),
            ['all', whole(faults.length), ...lossCells(all)],
          ],
        },
      },
    ],
    table: eachFault(faults),
  };
}

/** Narrow enough for the page: the words of a fault are in the table of its kinds. */
function eachFault(faults: readonly FaultEffect[]): Table {
  return {
    head: [
      'Fault',
      'Host',
      'Region',
      'Time',
      'Pods',
      'Interrupted, failed to start',
      'Failed checks',
      'Pod hours lost',
      'Providers, marketplace, renters bear',
    ],
    rows: faults.map((fault) => [
      shortFaultWords(fault.kind),
      fault.host === null ? '-' : `${fault.host}, ${fault.gpu ?? ''}`,
      fault.host_region ?? '-',
      timeOf(fault),
      whole(fault.pods),
      `${whole(fault.interruptions)}, ${whole(fault.failed_starts)}`,
      whole(fault.failed_checks),
      number(fault.lost_pod_hours),
      [fault.provider_loss_usd, fault.platform_loss_usd, fault.renter_loss_usd].map(usd).join(', '),
    ]),
  };
}

const noFaults = ({ faults }: Pick<Report, 'faults'>): Section => ({
  id: 'host-faults',
  finding: faults.length === 0 ? 'No fault happened' : 'No single host had a fault',
  notes: [],
  plot: null,
  legend: [],
  table: { head: [], rows: [] },
});

const lossCells = (losses: Losses): string[] => [
  whole(losses.interruptions),
  whole(losses.failed_starts),
  whole(losses.failed_checks),
  number(losses.lost_pod_hours),
  ...[losses.provider_loss_usd, losses.platform_loss_usd, losses.renter_loss_usd].map(usd),
];

function added(faults: readonly FaultEffect[]): Losses {
  const total = (figureOf: (fault: FaultEffect) => number) => sum(faults.map(figureOf));
  return {
    interruptions: total((each) => each.interruptions),
    failed_starts: total((each) => each.failed_starts),
    failed_checks: total((each) => each.failed_checks),
    lost_pod_hours: total((each) => each.lost_pod_hours),
    provider_loss_usd: total((each) => each.provider_loss_usd),
    platform_loss_usd: total((each) => each.platform_loss_usd),
    renter_loss_usd: total((each) => each.renter_loss_usd),
  };
}
