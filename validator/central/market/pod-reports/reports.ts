/** Composes the reports on pods. */
import type { HttpServer } from '#shared/http/server.ts';
import type { MailDeps } from '../../delivery/delivery.ts';
import type { ReportRefunds } from '../../money/metering/report-refund.ts';
import type { OnceDeps } from '../../platform/idempotency/once.ts';
import { registerReportExamination, registerReportRoutes } from './report.routes.ts';
import { createPodReports } from './report.service.ts';

export function createReportParts({ ports, mails, wakeMail }: MailDeps, refunds: ReportRefunds) {
  const { db, clock, random } = ports;
  const reports = createPodReports({ db, clock, random, mails, wakeMail, refunds });
  return {
    dueHandlers: reports.dueHandlers,
    /** Registers the routes below /api. */
    register(api: HttpServer, once: OnceDeps): void {
      registerReportRoutes(api, { ...once, reports });
      registerReportExamination(api, reports);
    },
  };
}
