/** Cycles with their verdicts, and signed evidence. */
import { z } from 'zod';
import { described } from '../described.ts';
import { queryNumber } from '../query-number.ts';
import {
  DEFAULT_ROWS,
  MAX_PAGE,
  MAX_VERDICTS,
  NEXT,
  olderThan,
  Sha256,
  SIGNED_TEXT,
  Signature,
  Time,
  VERDICT,
  Verdict,
} from './record-parts.ts';

export const EvidenceParams = z.object({ id: Sha256.describe('SHA-256 of the document, hex.') });

export const CyclesQuery = z.object(olderThan('cycles')).meta({ example: { limit: 20 } });
export type CyclesQuery = z.output<typeof CyclesQuery>;

export const CyclePage = z
  .object(
    described(
      {
        cycles: z
          .array(
            z.object(
              described(
                {
                  number: z.int(),
                  ended_at: Time,
                  passed: z.int(),
                  failed: z.int(),
                  withheld: z.int(),
                },
                {
                  number: 'Number of the cycle; cycles are numbered without gaps.',
                  ended_at: 'Time at which the cycle ended (UTC).',
                  passed: 'Nodes that passed their checks.',
                  failed: 'Nodes that failed.',
                  withheld: 'Nodes whose checks could not be completed.',
                },
              ),
            ),
          )
          .max(MAX_PAGE),
        next: z.int().nullable(),
      },
      { cycles: 'Cycles, newest first.', next: `\`before\` ${NEXT}` },
    ),
  )
  .meta({ id: 'CyclePage' });
export type CyclePage = z.output<typeof CyclePage>;

export const VerdictsQuery = z
  .object(
    described(
      {
        verdict: Verdict.optional(),
        after: z.uuid().toLowerCase().optional(),
        limit: queryNumber(z.int().min(1).max(MAX_VERDICTS).default(DEFAULT_ROWS)),
      },
      {
        verdict: 'Only nodes with this verdict; absent for all.',
        after: 'Only nodes with a higher id; absent for the first page.',
        limit: 'Maximum number of entries, 1 to 1000; 100 by default.',
      },
    ),
  )
  .meta({ example: { limit: 100 } });
export type VerdictsQuery = z.output<typeof VerdictsQuery>;

export const CycleVerdicts = z
  .object(
    described(
      {
        cycle: z.int(),
        ended_at: Time,
        verdicts: z
          .array(
            z.object(
              described(
                {
                  executor_id: z.uuid(),
                  hotkey: z.string(),
                  evidence_id: Sha256,
                  verdict: Verdict,
                  gpu_model: z.string(),
                  gpu_count: z.int(),
                  rented: z.boolean(),
                  simulated: z.boolean(),
                  uptime_minutes: z.int(),
                  failure_ppm: z.int(),
                },
                {
                  executor_id: 'Id of the node.',
                  hotkey: 'ss58 of its provider.',
                  evidence_id: 'Id of the document on which the verdict is based.',
                  verdict: VERDICT,
                  gpu_model: 'Full GPU name.',
                  gpu_count: 'Number of GPUs.',
                  rented: 'True if a renter used the node.',
                  simulated: 'True if its GPUs are simulated.',
                  uptime_minutes: "Minutes of good cycles in the policy's uptime window.",
                  failure_ppm: 'Moving average of failures, in millionths, including this cycle.',
                },
              ),
            ),
          )
          .max(MAX_VERDICTS),
        next: z.uuid().nullable(),
      },
      {
        cycle: 'Number of the cycle.',
        ended_at: 'Time at which the cycle ended (UTC).',
        verdicts: 'Verdicts in the order of node ids.',
        next: `\`after\` ${NEXT}`,
      },
    ),
  )
  .meta({ id: 'CycleVerdicts' });
export type CycleVerdicts = z.output<typeof CycleVerdicts>;

export const EvidenceQuery = z.object(olderThan('documents')).meta({ example: { limit: 20 } });
export type EvidenceQuery = z.output<typeof EvidenceQuery>;

export const EvidencePage = z
  .object(
    described(
      {
        executor_id: z.uuid(),
        first_seq: z.int().nullable(),
        last_seq: z.int().nullable(),
        documents: z
          .array(
            z.object(
              described(
                { id: Sha256, seq: z.int(), finished_at: Time, verdict: Verdict },
                {
                  id: 'SHA-256 of the document, hex.',
                  seq: "Number of the document in the node's chain, from 1 without gaps.",
                  finished_at: 'Time at which the check ended (UTC).',
                  verdict: VERDICT,
                },
              ),
            ),
          )
          .max(MAX_PAGE),
        next: z.int().nullable(),
      },
      {
        executor_id: 'Id of the node.',
        first_seq:
          'Number of the oldest document that the signed head of the chain covers; null without a trusted head.',
        last_seq:
          'Number of the newest document that the head covers; null without a trusted head.',
        documents: 'Documents, newest first.',
        next: `\`before\` ${NEXT}`,
      },
    ),
  )
  .meta({ id: 'EvidencePage' });
export type EvidencePage = z.output<typeof EvidencePage>;

export const SignedEvidence = z
  .object(
    described(
      {
        id: Sha256,
        executor_id: z.uuid(),
        seq: z.int(),
        finished_at: Time,
        verdict: Verdict,
        signed_as: z.string().max(64),
        // Absent in answers of older validators.
        header: z.string().max(1_000).nullable().default(null),
        document: z.string().nullable(),
        dropped_at: Time.nullable().default(null),
        signature: Signature,
      },
      {
        id: 'SHA-256 of `document` as UTF-8, hex.',
        executor_id: 'Id of the node.',
        seq: "Number of the document in the node's chain.",
        finished_at: 'Time at which the check ended (UTC).',
        verdict: VERDICT,
        signed_as: SIGNED_TEXT,
        header:
          'Signed header of the document, canonical JSON with the same `id`. Its member `validator` names the signer. Null in documents of older versions, whose signature covers `document`.',
        document:
          'The document, canonical JSON, exactly as it was hashed. Null if the validator does not store it.',
        dropped_at:
          'Time at which the validator last dropped old documents of passed checks of this node, this one among them. Null if the document was not dropped: if `document` is null too, it is missing.',
        signature: 'Signature of the validator, `0x` and hex.',
      },
    ),
  )
  .meta({ id: 'SignedEvidence' });
export type SignedEvidence = z.output<typeof SignedEvidence>;
