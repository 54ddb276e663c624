/** Renters' reports in inspections: the confirmed report on a node, and the time from which test rentals count. */
import { ReportDocument } from '#shared/api/central/pod-reports.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Facts } from '../../checks/check.ts';
import type { RenterReport } from '../../checks/measured.ts';
import { clearsReport } from '../../checks/renter-report.check.ts';
import type { EvidenceStore, StoreDb } from '../../store/tables.ts';
import { clearReports, findConfirmed, newestUndecided } from './report.store.ts';

export type ReportedNodes = ReturnType<typeof createReportedNodes>;

/** `intervalMs`: the interval of inspections, which a confirmed report outlasts at least. */
export function createReportedNodes({
  store,
  clock,
  intervalMs,
}: {
  store: EvidenceStore;
  clock: Clock;
  intervalMs: number;
}) {
  async function confirmedOn(executorId: string): Promise<RenterReport | null> {
    const row = await findConfirmed(store, executorId);
    if (row === undefined || row.document === null || row.decided_ms === null) return null;
    const { findings } = ReportDocument.parse(JSON.parse(row.document));
    const found = findings.findLast(({ shortfall }) => shortfall !== null);
    const { report_id, decided_ms: confirmed_ms } = row;
    return { report_id, shortfall: found?.shortfall ?? 'unknown', confirmed_ms };
  }

  return {
    confirmedOn,

    /**
     * Returns the time before which a test rental does not count: that of an undecided report, or the end of the
     * interval after a confirmed one. 0 if every test rental counts.
     */
    async rentalSince(executorId: string): Promise<number> {
      const undecidedMs = (await newestUndecided(store, executorId)) ?? 0;
      const confirmed = await confirmedOn(executorId);
      const againMs = confirmed === null ? 0 : confirmed.confirmed_ms + intervalMs;
      // A time in the future would repeat the test rental in every inspection until then.
      return Math.max(undecidedMs, againMs <= clock.now() ? againMs : 0);
    },

    /** Clears the confirmed reports if the run has the test rental that ends them. Runs in the transaction of the run. */
    async clear(tx: StoreDb, { executor, measured }: Facts): Promise<void> {
      const { renter_report: report, rental } = measured;
      if (report === null || rental === null || !clearsReport(measured)) return;
      await clearReports(tx, executor.id, { untilMs: report.confirmed_ms, atMs: rental.at_ms });
    },
  };
}
