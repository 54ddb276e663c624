/**
 * Renters' reports on pods, as central API and validators exchange them, and the signed outcome of an examination. The
 * outcome moves money, so the signature covers the whole document.
 */
import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { canonicalJson, parseCanonicalJson } from '../../signing/canonical-json.ts';
import { Hotkey, publicKeyOf } from '../../signing/hotkey.ts';
import { type Signer, signatureFromHex, toHex, verifySr25519 } from '../../signing/sr25519.ts';

/** Shortfalls that a renter can report. An examination compares everything, whatever the reason. */
export const REPORT_REASONS = [
  'wrong_gpu',
  'fewer_gpus',
  'less_memory',
  'fewer_cores',
  'less_disk',
  'ssh_unusable',
  'other',
] as const;
export const ReportReason = z.enum(REPORT_REASONS);
export type ReportReason = z.output<typeof ReportReason>;

/** Resources that were offered with the rental. */
export const RentalOffer = z.object(
  described(
    {
      gpu_type: z.string().nullable(),
      gpu_count: z.int().min(0),
      cpu_cores: z.number().min(0),
      memory_bytes: z.int().min(0),
      disk_bytes: z.int().min(0).nullable(),
    },
    {
      gpu_type:
        'Full name of the GPU type; null if the offer of the node has changed since the rental.',
      gpu_count: 'Number of GPUs of the pod.',
      cpu_cores: 'Number of cores of the pod.',
      memory_bytes: 'Memory of the pod in bytes.',
      disk_bytes: 'Disk space of the pod in bytes; null if it is not limited.',
    },
  ),
);
export type RentalOffer = z.output<typeof RentalOffer>;

/** An open report, as a validator receives it. */
export const ReportToExamine = z.object(
  described(
    {
      id: z.uuid(),
      pod_id: z.uuid(),
      executor_id: z.uuid(),
      reason: ReportReason,
      reported_ms: z.int(),
      may_enter: z.boolean(),
      offer: RentalOffer,
    },
    {
      id: 'Id of the report.',
      pod_id: 'Id of the pod.',
      executor_id: 'Id of the node.',
      reason: 'What the renter reports.',
      reported_ms: 'Time of the report in milliseconds since the epoch.',
      may_enter: 'True if the pod runs and its renter allows the validator to enter it.',
      offer: 'Resources that the pod must have.',
    },
  ),
);
export type ReportToExamine = z.output<typeof ReportToExamine>;

/** Maximum number of reports in one answer. */
export const MAX_REPORTS_AT_ONCE = 100;
export const ReportsToExamine = z.array(ReportToExamine).max(MAX_REPORTS_AT_ONCE);

/** Means of an observation: what the agent states, a command inside the reported pod, or a test rental. */
export const REPORT_MEANS = ['agent', 'pod', 'test_rental'] as const;
export type ReportMeans = (typeof REPORT_MEANS)[number];

const MAX_SHORTFALL_CHARS = 500;
const MAX_STEP_CHARS = 32;
const MAX_FINDINGS = 32;

/** One observation. `shortfall` is null if the node delivered everything. */
export const ReportFinding = z.strictObject({
  means: z.enum(REPORT_MEANS),
  at: z.int(),
  /** Step of the test rental that failed; null for other means. */
  step: z.string().max(MAX_STEP_CHARS).nullable(),
  shortfall: z.string().max(MAX_SHORTFALL_CHARS).nullable(),
});
export type ReportFinding = z.output<typeof ReportFinding>;

/**
 * `undecided`: the findings contradict each other, and no further examination follows. `unexamined`: the examination
 * could not be made, and is repeated. Neither is a verdict.
 */
export const REPORT_OUTCOMES = ['confirmed', 'not_confirmed', 'undecided', 'unexamined'] as const;
export type ReportOutcome = (typeof REPORT_OUTCOMES)[number];

export const ReportDocument = z.strictObject({
  v: z.literal(1),
  report_id: z.uuid(),
  pod_id: z.uuid(),
  executor_id: z.uuid(),
  validator: Hotkey,
  examined_at: z.int(),
  outcome: z.enum(REPORT_OUTCOMES),
  findings: z.array(ReportFinding).max(MAX_FINDINGS),
});
export type ReportDocument = z.output<typeof ReportDocument>;

const MAX_DOCUMENT_CHARS = 32_768;
const MAX_SIGNATURE_CHARS = 200;

/** The document as canonical JSON, and the validator's signature over it. */
export const SignedReport = z.object(
  described(
    {
      document: z.string().max(MAX_DOCUMENT_CHARS),
      signature: z.string().max(MAX_SIGNATURE_CHARS),
    },
    {
      document: 'Outcome and findings as canonical JSON.',
      signature:
        'Signature of the validator over `podwright-pod-report-v1`, a line feed and the document: `0x` and hex.',
    },
  ),
);
export type SignedReport = z.output<typeof SignedReport>;

/** Domain separation: the signature is valid for nothing else. */
const SIGNED_AS = 'podwright-pod-report-v1\n';

export async function signReport(document: ReportDocument, signer: Signer): Promise<SignedReport> {
  const text = canonicalJson(document);
  return {
    document: text,
    signature: toHex(await signer.sign(new TextEncoder().encode(SIGNED_AS + text))),
  };
}

/** Returns the document; null if it has another form, or is not signed by its validator. */
export function readSignedReport({
  document: text,
  signature,
}: SignedReport): ReportDocument | null {
  const parsed = ReportDocument.safeParse(parseCanonicalJson(text)?.value);
  if (!parsed.success) return null;
  const key = publicKeyOf(parsed.data.validator);
  const bytes = signatureFromHex(signature);
  const message = new TextEncoder().encode(SIGNED_AS + text);
  return key !== null && bytes !== null && verifySr25519(message, bytes, key) ? parsed.data : null;
}
