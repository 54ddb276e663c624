/** The line of a host is as fast as renters need it, each way, and what goes over it arrives as it was sent. */
import { failed, type Judge, passed, unknown } from './check.ts';
import type { LineFacts } from './measured.ts';

const KBIT_PER_MBIT = 1_000;
/** An agent may be busy when it is asked; one that always is has something to hide. */
const MOST_REFUSALS = 3;
/** Whatever stands in between may have changed a stream, and a moment's load a mean. */
const IN_A_ROW = 2;

/** Tries, of which there is one in five minutes at most. */
const NEVER_IN_A_ROW = 6;

export const judgeBandwidth: Judge = ({ measured: { line }, policy }) => {
  if (line === null) return unknown('not measured');
  const measured = wordsOf(line);
  const again = { inARow: IN_A_ROW, isRepeated: line.repeated };
  if (line.refusals >= MOST_REFUSALS) {
    const message = 'The agent would not have its line measured';
    return failed('BANDWIDTH_REFUSED', `${line.refusals} times in a row`, message);
  }
  if (line.false_stream !== null) {
    const message = 'Something else arrived than was sent';
    return { ...failed('BANDWIDTH_FALSE', `${line.false_stream}: ${measured}`, message), ...again };
  }
  if (line.samples === 0) {
    // Where nobody was measured of late it may be the validator's own line that breaks.
    if (line.others_down_kbit === 0) return unknown('not measured');
    const message = 'No measurement of its line ever came to an end';
    const failure = failed('BANDWIDTH_REFUSED', 'tried, and broken off', message);
    return { ...failure, inARow: NEVER_IN_A_ROW, isRepeated: line.repeated };
  }
  const { min_bandwidth_mbit: least, bandwidth_floor_mbit: floor } = policy.checks;
  const slow = waysOf(line).filter(({ kbit }) => kbit < least * KBIT_PER_MBIT);
  if (slow.length === 0) return passed(measured);
  // Where nobody was faster of late it may be the validator's own line.
  const own = slow.filter(({ others }) => others >= least * KBIT_PER_MBIT);
  if (own.length === 0) return unknown(`${measured}, and nobody is faster`);
  const failure = failed('BANDWIDTH_LOW', measured, 'The line is slow');
  return own.some(({ kbit }) => kbit < floor * KBIT_PER_MBIT) ? failure : { ...failure, ...again };
};

const waysOf = (line: LineFacts) => [
  { kbit: line.down_kbit, others: line.others_down_kbit },
  { kbit: line.up_kbit, others: line.others_up_kbit },
];

/** Whole megabits a second each way; null where nothing was measured. */
export function lineSpeeds(
  line: LineFacts | null,
): { download_mbps: number; upload_mbps: number } | null {
  if (line === null || line.samples === 0) return null;
  const mbps = (kbit: number) => Math.floor(kbit / KBIT_PER_MBIT);
  return { download_mbps: mbps(line.down_kbit), upload_mbps: mbps(line.up_kbit) };
}

function wordsOf({ down_kbit: down, up_kbit: up, samples }: LineFacts): string {
  const mbit = (kbit: number) => (kbit / KBIT_PER_MBIT).toFixed(1);
  return `${mbit(down)} Mbit/s down, ${mbit(up)} Mbit/s up, mean of ${samples}`;
}
