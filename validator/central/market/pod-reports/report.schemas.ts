/** Requests and responses of reports on pods. */
import { z } from 'zod';
import {
  MAX_REPORTS_AT_ONCE,
  ReportReason,
  SignedReport,
} from '#shared/api/central/pod-reports.ts';
import { described } from '#shared/api/described.ts';
import { CREATED_AT } from '../../platform/openapi/field-texts.ts';
import {
  displayText,
  NaiveTime,
  optional,
  queryNumber,
  Uuid,
  withDefault,
} from '../../platform/wire.ts';
import { REPORT_STATES } from './report.state.ts';

const MAX_DESCRIPTION_CHARS = 2_000;

export const PodReportParams = z.object({ id: Uuid });

export const PodReportRequest = z
  .object(
    described(
      {
        reason: ReportReason,
        description: optional(displayText(MAX_DESCRIPTION_CHARS)),
        consent: withDefault(z.boolean(), false),
      },
      {
        reason: 'What the pod lacks.',
        description:
          'Description for the operator, up to 2000 characters; the provider does not receive it. Absent for none.',
        consent:
          'True if the validator may enter the pod and run commands that read its resources.',
      },
    ),
  )
  .meta({
    id: 'PodReportRequest',
    example: { reason: 'less_memory', description: 'free shows 8 GiB.', consent: true },
  });
export type PodReportRequest = z.output<typeof PodReportRequest>;

export const PodReport = z
  .object(
    described(
      {
        id: z.uuid(),
        pod_id: z.uuid(),
        executor_id: z.uuid(),
        reason: ReportReason,
        description: z.string(),
        consent: z.boolean(),
        status: z.enum(REPORT_STATES),
        refund: z.number(),
        finding: z.string().nullable(),
        evidence: SignedReport.nullable(),
        created_at: NaiveTime,
        ended_at: NaiveTime.nullable(),
      },
      {
        id: 'Id of the report.',
        pod_id: 'Id of the pod.',
        executor_id: 'Id of the node.',
        reason: 'What the pod lacks according to the renter.',
        description: 'Description of the renter; empty for none.',
        consent: 'True if the validator may enter the pod.',
        status:
          '`open`, `examining`, `confirmed`, `not_confirmed`, or `expired` if no validator could examine or decide it.',
        refund: 'Refund in USD; 0 for none.',
        finding: 'Last shortfall that the validator found; null if it found none.',
        evidence: 'Last outcome with all findings, signed by the validator; null before the first.',
        created_at: CREATED_AT,
        ended_at: 'Time of the end of the examination (UTC); null before the end.',
      },
    ),
  )
  .meta({ id: 'PodReport' });
export type PodReport = z.output<typeof PodReport>;

const DEFAULT_LIMIT = 20;

export const PodReportsQuery = z
  .object(
    described(
      {
        limit: queryNumber(z.int().min(1).max(MAX_REPORTS_AT_ONCE).default(DEFAULT_LIMIT)),
        pod_id: optional(Uuid),
      },
      { limit: 'Maximum number of reports, 1 to 100.', pod_id: 'Only reports on this pod.' },
    ),
  )
  .meta({ example: { limit: 20 } });
export type PodReportsQuery = z.output<typeof PodReportsQuery>;

export const ReportedOutcome = z.object(
  described(
    { status: z.enum(REPORT_STATES), refund: z.number() },
    { status: 'State of the report after the outcome.', refund: 'Refund in USD; 0 for none.' },
  ),
);
export type ReportedOutcome = z.output<typeof ReportedOutcome>;
