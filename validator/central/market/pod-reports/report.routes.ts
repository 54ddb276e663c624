/** Routes on which renters report pods and read their reports, and on which validators examine them. */
import { z } from 'zod';
import { ReportsToExamine, SignedReport } from '#shared/api/central/pod-reports.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { answerOnce, type OnceDeps } from '../../platform/idempotency/once.ts';
import { userOf, validatorOf } from '../../platform/identity.ts';
import { Uuid } from '../../platform/wire.ts';
import {
  PodReport,
  PodReportParams,
  PodReportRequest,
  PodReportsQuery,
  ReportedOutcome,
} from './report.schemas.ts';
import type { PodReports } from './report.service.ts';

const HotkeyParams = z.object({ validator_hotkey: z.string() });
const EXAMPLE = { document: 'document-of-the-examination', signature: '0x01' };
const ValidatorReportParams = HotkeyParams.extend({ id: Uuid });

export type ReportRoutesDeps = OnceDeps & { reports: PodReports };

export function registerReportRoutes(api: HttpServer, deps: ReportRoutesDeps): void {
  const { reports } = deps;
  api.post(
    '/pods/:id/report',
    {
      config: { auth: 'user', once: 'pod-report' },
      schema: {
        tags: ['Pods'],
        summary: 'Report a pod that is not what was offered',
        description:
          'Stores a report while the pod runs, or within 3 days after its end. With `consent`, a validator enters the running pod at once; otherwise it rents the node as soon as the node is free. If the report is confirmed, the charges of up to 24 hours before the report are refunded, and the node cannot be rented until it has passed another examination.',
        errors: {
          pod_not_found: 'the account never had such a pod',
          pod_state_conflict: 'the pod never ran, or ended more than 3 days ago',
          conflict: 'the pod has an open report, or a confirmed one',
          rate_limited:
            'the account has too many reports: 5 open, 10 in a day, 3 on a node in a week, or 3 that were not confirmed in 30 days',
        },
        params: PodReportParams,
        body: PodReportRequest,
        response: { 201: PodReport },
      },
    },
    async (request, reply) => {
      const { body, params } = request;
      const subject = { identity: userOf(request), podId: params.id };
      const effects = (tx: Parameters<PodReports['report']>[0]) =>
        reports.report(tx, subject, body);
      await answerOnce(deps, { request, reply }, { schema: PodReport, status: 201, effects });
      return reply;
    },
  );
  api.get(
    '/pod-reports',
    {
      config: { auth: 'user' },
      schema: {
        tags: ['Pods'],
        summary: 'List reports on pods',
        description:
          "Returns the account's reports, newest first, with their status, refund and signed evidence.",
        querystring: PodReportsQuery,
        response: { 200: z.array(PodReport) },
      },
    },
    (request) => reports.list(userOf(request), request.query),
  );
}

export function registerReportExamination(api: HttpServer, reports: PodReports): void {
  const config = { auth: 'validator' } as const;
  api.post(
    '/validator/:validator_hotkey/pod-reports',
    {
      config,
      schema: {
        tags: ['Validators'],
        summary: 'Claim reports to examine',
        description:
          'Returns open reports on pods, oldest first, and reserves them for this validator for an hour. Each request extends the reservations.',
        errors: {
          forbidden: 'the path names another hotkey than the signature',
          unauthorized: 'the signature is missing, wrong, too old or used before',
        },
        retry: 'Safe: a repeat returns the same reports.',
        params: HotkeyParams,
        response: { 200: ReportsToExamine },
      },
    },
    (request) => reports.toExamine(validatorOf(request)),
  );
  api.post(
    '/validator/:validator_hotkey/pod-reports/:id/outcome',
    {
      config,
      schema: {
        tags: ['Validators'],
        summary: 'Record the outcome of an examination',
        description:
          'Stores the signed outcome. `confirmed` refunds the renter and notifies renter and provider. `unexamined` opens the report again; the fifth one ends it as expired.',
        errors: {
          forbidden:
            'the path names another hotkey than the signature, the report has ended, or another validator examines it',
          not_found: 'there is no such report',
          unauthorized: 'the signature of the request is missing, wrong, too old or used before',
          validation_error:
            'the document is not signed by this validator, or concerns another report',
        },
        retry: 'Safe: a repeat of the same document changes nothing.',
        params: ValidatorReportParams,
        body: SignedReport.meta({ id: 'PodReportOutcome', example: EXAMPLE }),
        response: { 200: ReportedOutcome },
      },
    },
    (request) => reports.recordOutcome(validatorOf(request), request.params.id, request.body),
  );
}
