/** Faults of many parties, which plots over time shade and the report describes one by one. Pure. */
import { HOST_FAULTS } from '../../scenarios/scenario.ts';
import type { FaultEffect, Report } from '../report.ts';
import type { Band } from './svg.ts';
import { clockTime, timeRange } from './text.ts';
import { faultWords } from './words.ts';

export type NumberedFault = { number: number; fault: FaultEffect };

const HOURS_PER_DAY = 24;
/** Further faults of a long run are in the table of all faults only. */
const MAX_NUMBERED = 20;

export const isOfOneHost = ({ kind }: FaultEffect): boolean =>
  HOST_FAULTS.some((each) => each === kind);

/** Returns the faults of regions, of many hosts and of services, numbered by their time. */
export const numberedFaults = ({ faults }: Pick<Report, 'faults'>): NumberedFault[] =>
  faults
    .filter((fault) => !isOfOneHost(fault))
    .slice(0, MAX_NUMBERED)
    .map((fault, index) => ({ number: index + 1, fault }));

/** Returns the bands of a plot over days, and their meaning. */
export function bandsOf(report: Pick<Report, 'faults' | 'run'>): {
  bands: Band[];
  meanings: string[];
} {
  const numbered = numberedFaults(report);
  return {
    bands: numbered.map(({ number, fault: { from_hours: from, to_hours: to } }) => ({
      number,
      from: from / HOURS_PER_DAY,
      to: (to ?? report.run.period_hours) / HOURS_PER_DAY,
    })),
    meanings: numbered.map(({ number, fault }) => `${number}: ${nameOf(fault)}, ${timeOf(fault)}`),
  };
}

/** Returns the fault as a noun, with its region. */
export const nameOf = ({ kind, region }: FaultEffect): string =>
  region === null ? faultWords(kind) : `region ${region} cut off`;

export function timeOf({ from_hours: from, to_hours: to }: FaultEffect): string {
  if (to === null) return `from ${clockTime(from)} on`;
  return from === to ? `at ${clockTime(from)}` : timeRange(from, to);
}
