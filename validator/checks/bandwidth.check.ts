/** Checks the host's bandwidth in both directions, and that transferred data arrives unchanged. */
import { ok, unknown } from '#shared/check/check.ts';
import { defineCheck, fail, READ_LOG_AND_RESTART } from './check.ts';
import type { LineFacts } from './measured.ts';

const KBIT_PER_MBIT = 1_000;
/** Consecutive refusals at which the check fails: a busy agent may refuse a measurement. */
const MOST_REFUSALS = 3;
/** Consecutive failures at which the check fails: a proxy or a load may affect a single measurement. */
const IN_A_ROW = 2;
/** Attempts without any result at which the check fails. Attempts are at least five minutes apart. */
const NEVER_IN_A_ROW = 6;

export const bandwidth = defineCheck({
  id: 'bandwidth',
  detects: 'a slow network connection',
  required:
    'at least `min_bandwidth_mbit` of the policy in both directions, and data that arrives unchanged',
  category: 'env',
  isTrial: true,
  judge({ measured: { line }, policy }) {
    if (line === null) return unknown('not measured');
    const measured = formatLine(line);
    const again = { inARow: IN_A_ROW, isRepeated: line.repeated };
    if (line.refusals >= MOST_REFUSALS) {
      const message = 'The agent refused the measurement of its line';
      return fail('BANDWIDTH_REFUSED', `${line.refusals} times in a row`, message);
    }
    if (line.false_stream !== null) {
      const message = 'The received data differs from the data sent';
      return { ...fail('BANDWIDTH_FALSE', `${line.false_stream}: ${measured}`, message), ...again };
    }
    if (line.samples === 0) {
      // If no executor was measured recently, the validator's own line may be at fault.
      if (line.others_down_kbit === 0) return unknown('not measured');
      const message = 'No measurement of the line was ever completed';
      const failure = fail('BANDWIDTH_REFUSED', 'tried, and broken off', message);
      return { ...failure, inARow: NEVER_IN_A_ROW, isRepeated: line.repeated };
    }
    const { min_bandwidth_mbit: least, bandwidth_floor_mbit: floor } = policy.checks;
    const slow = directionsOf(line).filter(({ kbit }) => kbit < least * KBIT_PER_MBIT);
    if (slow.length === 0) return ok(measured);
    // If no other executor was faster recently, the validator's own line may be the limit.
    const own = slow.filter(({ others }) => others >= least * KBIT_PER_MBIT);
    if (own.length === 0) return unknown(`${measured}, and no executor is faster`);
    const failure = fail('BANDWIDTH_LOW', measured, 'The line is slow');
    const isBelowFloor = own.some(({ kbit }) => kbit < floor * KBIT_PER_MBIT);
    return isBelowFloor ? { ...failure, isRepeated: line.repeated } : { ...failure, ...again };
  },
  remedies: {
    BANDWIDTH_LOW: 'Check the uplink of the host and other programs that use the uplink.',
    BANDWIDTH_FALSE: 'Remove proxies that change data between validator and agent.',
    BANDWIDTH_REFUSED: READ_LOG_AND_RESTART,
  },
});

const directionsOf = (line: LineFacts) => [
  { kbit: line.down_kbit, others: line.others_down_kbit },
  { kbit: line.up_kbit, others: line.others_up_kbit },
];

/** Whole megabits per second; null without a measurement. */
export function lineSpeeds(
  line: LineFacts | null,
): { download_mbps: number; upload_mbps: number } | null {
  if (line === null || line.samples === 0) return null;
  const mbps = (kbit: number) => Math.floor(kbit / KBIT_PER_MBIT);
  return { download_mbps: mbps(line.down_kbit), upload_mbps: mbps(line.up_kbit) };
}

function formatLine({ down_kbit: down, up_kbit: up, samples }: LineFacts): string {
  const mbit = (kbit: number) => (kbit / KBIT_PER_MBIT).toFixed(1);
  return `${mbit(down)} Mbit/s down, ${mbit(up)} Mbit/s up, mean of ${samples}`;
}
