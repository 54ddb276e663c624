/**
 * The evidence document of a check run: inputs, checks, verdict, policies and times. Documents are chained, and the
 * validator signs a header of each; see README.md.
 */
import { z } from 'zod';
import { PublicKeyHex } from '#shared/api/agent/identity.ts';
import { Inventory, VerifyResult } from '#shared/api/agent/inventory.ts';
import {
  CheckResult,
  ExecutorToCheck,
  type HealthReport,
} from '#shared/api/central/validator-routes.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { canonicalJson, parseCanonicalJson } from '#shared/signing/canonical-json.ts';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import { type Signer, toHex } from '#shared/signing/sr25519.ts';
import { type Facts, REFUSALS } from '../checks/check.ts';
import type { CheckPolicy } from '../checks/check-policy.ts';
import { Measured } from '../checks/measured.ts';
import { judge } from '../checks/verdict.ts';
import { isTrustedAt, type TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import { CYCLE_VERDICTS, type CycleVerdict, type EvidenceRow } from '../store/tables.ts';
import {
  type EvidenceHeader,
  HEADER_SIGNED_AS,
  headerIn,
  headerMessage,
  isSignedBy,
  NOT_SIGNED,
  untrusted,
} from './header.ts';

/** Precedes documents of older versions in the text that is signed: the signature is valid for nothing else. */
const DOCUMENT_SIGNED_AS = 'podwright-evidence-v1\n';
export const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const EpochMs = z.int().min(0);
/** Answers of agents contain fractions, which canonical JSON does not allow, so they are stored as text. */
const JsonText = z.string().max(4_000_000);

export const EvidenceDocument = z.strictObject({
  v: z.literal(1),
  executor_id: z.uuid(),
  /** Number in the executor's chain, from 1. */
  seq: z.int().min(1),
  /** Id of the previous document; null for the first. */
  previous: Sha256.nullable(),
  validator: Hotkey,
  /** Version of the program that judged; another version may judge differently. */
  program: z.string(),
  /** Key that signed the agent's answers; null if no answer was accepted. */
  agent_key: PublicKeyHex.nullable(),
  intent_hash: z.null(),
  /** Proof of work of the processor; null if none succeeded. */
  pow: z
    .strictObject({
      device: z.literal('cpu').optional(),
      roots: z.array(Sha256).max(100),
      openings_hash: Sha256.nullable(),
      ms: z.int().min(0),
    })
    .nullable(),
  /** Proofs of work of the cards by UUID; absent in documents of older versions. */
  pow_gpu: z
    .strictObject({
      device: z.literal('gpu'),
      cards: z.array(
        z.strictObject({
          uuid: z.string(),
          roots: z.array(Sha256).max(100),
          openings_hash: Sha256.nullable(),
        }),
      ),
      ms: z.int().min(0),
    })
    .nullable()
    .default(null),
  policy_version: z.int(),
  policy_hash: Sha256,
  /** Check policy; absent in documents of older versions. */
  check_policy_version: z.int().nullable().default(null),
  check_policy_hash: Sha256.nullable().default(null),
  started_at: EpochMs,
  finished_at: EpochMs,
  agent_version: z.string().nullable(),
  /** The executor as the central API listed it. */
  executor: ExecutorToCheck,
  inputs: z.strictObject({
    inventory: JsonText.nullable(),
    probe: JsonText.nullable(),
    transport_error: z.string().nullable(),
    refusal: z.enum(REFUSALS).nullable(),
    /** End of the provider's enrolment of `agent_key`. */
    enrolled_until: EpochMs.nullable(),
    /** Consecutive unreachable inspections before this one. */
    transport_failures: z.int().min(0),
    received_at: EpochMs,
    accept_simulated: z.boolean(),
    /** `Measured` as text; absent in documents of older versions. */
    measured: JsonText.nullable().default(null),
  }),
  checks: z.array(CheckResult),
  verdict: z.enum(CYCLE_VERDICTS),
  simulated: z.boolean(),
});
export type EvidenceDocument = z.output<typeof EvidenceDocument>;

export type CheckRun = {
  facts: Facts;
  transportFailures: number;
  report: HealthReport;
  startedMs: number;
  finishedMs: number;
};

/** Position of a document in its executor's chain, its signer and its policies. */
export type ChainPosition = {
  seq: number;
  previous: string | null;
  validator: Hotkey;
  policyVersion: number;
  policyHash: string;
  checkPolicyHash: string;
};

/** `validator` is null in documents of older versions, whose signature covers the document instead of a header. */
export type SignedDocument = Pick<EvidenceRow, 'id' | 'document' | 'signature' | 'validator'>;

export function documentOf(run: CheckRun, place: ChainPosition): EvidenceDocument {
  const { executor, inventory, probe, measured, policy, transportError, receivedMs } = run.facts;
  const { identity, refusal } = run.facts;
  const text = (value: unknown) => (value === null ? null : JSON.stringify(value));
  return {
    v: 1,
    executor_id: executor.id,
    seq: place.seq,
    previous: place.previous,
    validator: place.validator,
    program: VERSION,
    agent_key: identity?.publicKey ?? null,
    intent_hash: null,
    pow: powOf(run.facts),
    pow_gpu: gpuPowOf(run.facts),
    policy_version: place.policyVersion,
    policy_hash: place.policyHash,
    check_policy_version: policy.checks.version,
    check_policy_hash: place.checkPolicyHash,
    started_at: run.startedMs,
    finished_at: run.finishedMs,
    agent_version: inventory?.agent_version ?? null,
    executor,
    inputs: {
      inventory: text(inventory),
      probe: text(probe),
      transport_error: transportError,
      refusal,
      enrolled_until: identity?.enrolledUntilMs ?? null,
      transport_failures: run.transportFailures,
      received_at: receivedMs,
      accept_simulated: policy.acceptSimulated,
      measured: text(measured),
    },
    checks: run.report.checks,
    verdict: verdictOf(run.report),
    simulated: inventory?.simulated ?? false,
  };
}

function powOf({ measured: { proof } }: Facts): EvidenceDocument['pow'] {
  if (proof?.status !== 'proven') return null;
  const { roots, openings_hash, ms } = proof;
  return { device: 'cpu', roots, openings_hash, ms: Math.round(ms ?? 0) };
}

function gpuPowOf({ measured: { gpu_proof: proof } }: Facts): EvidenceDocument['pow_gpu'] {
  if (proof?.status !== 'proven') return null;
  const cards = proof.cards.map(({ uuid, roots, openings_hash }) => {
    return { uuid, roots, openings_hash };
  });
  return { device: 'gpu', cards, ms: Math.round(proof.ms ?? 0) };
}

/** Canonical text, its SHA-256 as id, and the signature over its header. */
export async function signDocument(
  document: EvidenceDocument,
  signer: Signer,
): Promise<SignedDocument & { document: string }> {
  const text = canonicalJson(document);
  const id = sha256Hex(text);
  const signature = toHex(await signer.sign(headerMessage(headerOf(document, id))));
  return { id, document: text, signature, validator: document.validator };
}

export function headerOf(document: EvidenceDocument, id: string): EvidenceHeader {
  const { executor_id, seq, previous, validator, finished_at, verdict } = document;
  return { v: 2, id, executor_id, seq, previous, validator, finished_at, verdict };
}

/** Text before the signed one, and the signed header; null if the signature covers the document. */
export function signedTextOf(row: EvidenceRow): { signed_as: string; header: string | null } {
  const header = headerIn(row);
  return header === null
    ? { signed_as: DOCUMENT_SIGNED_AS, header: null }
    : { signed_as: HEADER_SIGNED_AS, header: canonicalJson(header) };
}

export type ReadDocument = { document: EvidenceDocument } | { problem: string };

/** Parses a document and verifies its id and that it is signed with one of `keys` within that key's validity. */
export function readDocument(signed: SignedDocument, keys: readonly TrustedHotkey[]): ReadDocument {
  const read = parseDocument(signed);
  if ('problem' in read) return read;
  const { validator, finished_at: finishedMs } = read.document;
  if (!isTrustedAt(keys, validator, finishedMs)) {
    return { problem: untrusted(validator, finishedMs) };
  }
  const message =
    signed.validator === null
      ? new TextEncoder().encode(DOCUMENT_SIGNED_AS + signed.document)
      : headerMessage(headerOf(read.document, signed.id));
  return isSignedBy(validator, message, signed.signature) ? read : { problem: NOT_SIGNED };
}

/** Parses a document that this process wrote, without verifying the signature, which takes milliseconds. */
export function parseDocument({
  id,
  document: text,
}: Pick<SignedDocument, 'id' | 'document'>): ReadDocument {
  if (text === null) return { problem: 'its document is missing' };
  if (sha256Hex(text) !== id) return { problem: 'its hash does not match' };
  const read = parseCanonicalJson(text);
  const parsed = EvidenceDocument.safeParse(read?.value);
  if (!parsed.success) return { problem: 'it has an unknown format' };
  return { document: parsed.data };
}

/**
 * Returns true if judging the inputs again reproduces the stated checks and verdict. Documents of another program
 * version or of an unknown policy (null) are accepted without a new judgement.
 */
export function reproducesVerdict(document: EvidenceDocument, checks: CheckPolicy | null): boolean {
  const { inputs, executor } = document;
  if (document.program !== VERSION || checks === null || inputs.measured === null) return true;
  const facts: Facts = {
    executor,
    inventory: inputs.inventory === null ? null : Inventory.parse(JSON.parse(inputs.inventory)),
    probe: inputs.probe === null ? null : VerifyResult.parse(JSON.parse(inputs.probe)),
    transportError: inputs.transport_error,
    refusal: inputs.refusal,
    identity: identityIn(document),
    receivedMs: inputs.received_at,
    measured: Measured.parse(JSON.parse(inputs.measured)),
    policy: { acceptSimulated: inputs.accept_simulated, checks },
  };
  const report = judge(facts, inputs.transport_failures);
  return (
    verdictOf(report) === document.verdict &&
    canonicalJson(comparableOf(report.checks)) === canonicalJson(comparableOf(document.checks))
  );
}

/**
 * Leaves out texts for people, which may be reworded between builds of one version. `measured` of an unknown check is
 * such a text.
 */
function comparableOf(checks: readonly CheckResult[]) {
  return checks.map(({ message, required: _, remediation: __, measured, ...codes }) => ({
    ...codes,
    measured: message === 'unknown' ? null : measured,
  }));
}

function identityIn({ agent_key: publicKey, inputs }: EvidenceDocument): Facts['identity'] {
  const { enrolled_until: enrolledUntilMs } = inputs;
  if (publicKey === null || enrolledUntilMs === null) return null;
  return { publicKey, enrolledUntilMs };
}

function verdictOf({ verdict }: HealthReport): CycleVerdict {
  return verdict === 'verified' ? 'ok' : verdict;
}
