/** Fails a node on which a renter's report was confirmed, until a test rental passes a full interval later. */
import { ok } from '#shared/check/check.ts';
import { defineCheck, fail } from './check.ts';
import type { Measured } from './measured.ts';

/** Returns true if the run has a test rental that ends the failure. */
export function clearsReport({ renter_report, rental, interval_ms }: Measured): boolean {
  if (renter_report === null || rental?.status !== 'passed') return false;
  return rental.at_ms >= renter_report.confirmed_ms + interval_ms;
}

export const renterReport = defineCheck({
  id: 'renter_report',
  detects: 'a node that did not deliver to a renter what it offers',
  required:
    'no confirmed report of a renter, or a test rental that passed a full interval after the confirmation',
  category: 'runtime',
  whileRented: true,
  judge({ measured }) {
    const { renter_report: report } = measured;
    if (report === null) return ok('none');
    if (clearsReport(measured)) return ok('a later test rental passed');
    const found = `${report.shortfall} (report ${report.report_id})`;
    const message = 'A renter’s report on this node was confirmed';
    return { ...fail('RENTER_REPORT_CONFIRMED', found, message), isCertain: true };
  },
  remedies: {
    RENTER_REPORT_CONFIRMED:
      'Give pods what the node offers, or correct the offer; the next test rental after a full check interval ends the failure.',
  },
});
