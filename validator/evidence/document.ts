/** One check run as a document that stands for itself: inputs, outcome, policy, times; signed and chained (validator reference 7). */
import { z } from 'zod';
import { PublicKeyHex } from '#shared/api/agent/identity.ts';
import { Inventory, VerifyResult } from '#shared/api/agent/inventory.ts';
import {
  CheckResult,
  ExecutorToCheck,
  type HealthReport,
} from '#shared/api/central/validator-routes.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { canonicalJson, parseCanonicalJson } from '#shared/signing/canonical-json.ts';
import { Hotkey, publicKeyOf } from '#shared/signing/hotkey.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import { type Signer, signatureFromHex, toHex, verifySr25519 } from '#shared/signing/sr25519.ts';
import { type Facts, REFUSALS } from '../checks/check.ts';
import type { CheckPolicy } from '../checks/check-policy.ts';
import { Measured } from '../checks/measured.ts';
import { judge } from '../checks/pipeline.ts';
import { countsAt, type TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import { CYCLE_VERDICTS, type CycleVerdict } from '../store/tables.ts';

/** So that a signature can mean nothing else. */
const SIGNED_AS = 'podwright-evidence-v1\n';
/** A SHA-256 in hex. */
export const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const EpochMs = z.int().min(0);
/** Agents' answers hold fractions, which canonical JSON has none of: they are kept as texts. */
const JsonText = z.string().max(4_000_000);

export const EvidenceDocument = z.strictObject({
  v: z.literal(1),
  executor_id: z.uuid(),
  /** Counts the executor's documents from 1. */
  seq: z.int().min(1),
  /** Id of the one before; null for the first. */
  previous: Sha256.nullable(),
  validator: Hotkey,
  /** Of the program that judged: another one may judge otherwise. */
  program: z.string(),
  /** That the agent's answers were signed with; null when none was believed. */
  agent_key: PublicKeyHex.nullable(),
  intent_hash: z.null(),
  /** Null where no work was proven. */
  pow: z
    .strictObject({
      device: z.literal('cpu').optional(),
      roots: z.array(Sha256).max(100),
      openings_hash: Sha256.nullable(),
      ms: z.int().min(0),
    })
    .nullable(),
  /** The same of cards, each by its UUID; documents of older programs have none. */
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
  /** Of what the checks went by; documents of older programs have none. */
  check_policy_version: z.int().nullable().default(null),
  check_policy_hash: Sha256.nullable().default(null),
  started_at: EpochMs,
  finished_at: EpochMs,
  agent_version: z.string().nullable(),
  /** As the central API listed it. */
  executor: ExecutorToCheck,
  inputs: z.strictObject({
    inventory: JsonText.nullable(),
    probe: JsonText.nullable(),
    transport_error: z.string().nullable(),
    refusal: z.enum(REFUSALS).nullable(),
    /** Until when the provider's enrolment of `agent_key` counts. */
    enrolled_until: EpochMs.nullable(),
    /** Unreachable inspections just before this one. */
    transport_failures: z.int().min(0),
    received_at: EpochMs,
    accept_simulated: z.boolean(),
    /** `Measured` as text; documents of older programs have none. */
    measured: JsonText.nullable().default(null),
  }),
  checks: z.array(CheckResult),
  verdict: z.enum(CYCLE_VERDICTS),
  simulated: z.boolean(),
});
export type EvidenceDocument = z.output<typeof EvidenceDocument>;

/** A check run, and what came of it. */
export type CheckRun = {
  facts: Facts;
  transportFailures: number;
  report: HealthReport;
  startedMs: number;
  finishedMs: number;
};

/** Where a document stands in its executor's chain, and who answers for it. */
export type Place = {
  seq: number;
  previous: string | null;
  validator: Hotkey;
  policyVersion: number;
  policyHash: string;
  checkPolicyHash: string;
};

export type SignedDocument = { id: string; document: string; signature: string };

/** The document of a run. */
export function documentOf(run: CheckRun, place: Place): EvidenceDocument {
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

/** Its canonical text, the hash of that, and the signature over it. */
export async function signDocument(
  document: EvidenceDocument,
  signer: Signer,
): Promise<SignedDocument> {
  const text = canonicalJson(document);
  const signature = toHex(await signer.sign(new TextEncoder().encode(SIGNED_AS + text)));
  return { id: sha256Hex(text), document: text, signature };
}

export type ReadDocument = { document: EvidenceDocument } | { problem: string };

/** What it says, if it is what its id is of, and signed with one of `keys` in that key's time. */
export function readDocument(signed: SignedDocument, keys: readonly TrustedHotkey[]): ReadDocument {
  const read = parseDocument(signed);
  if ('problem' in read) return read;
  const { validator, finished_at: finishedMs } = read.document;
  if (!countsAt(keys, validator, finishedMs)) {
    return {
      problem: `it is of ${naiveUtc(finishedMs)}Z and signed by ${validator}, whose signature does not count then`,
    };
  }
  const key = publicKeyOf(validator);
  const bytes = signatureFromHex(signed.signature);
  const message = new TextEncoder().encode(SIGNED_AS + signed.document);
  if (key === null || bytes === null || !verifySr25519(message, bytes, key)) {
    return { problem: 'its signature is not its validator’s' };
  }
  return read;
}

/** The same without its signature, which costs milliseconds: for what we wrote ourselves. */
export function parseDocument({
  id,
  document: text,
}: Pick<SignedDocument, 'id' | 'document'>): ReadDocument {
  if (sha256Hex(text) !== id) return { problem: 'its hash is another' };
  const read = parseCanonicalJson(text);
  const parsed = EvidenceDocument.safeParse(read?.value);
  if (!parsed.success) return { problem: 'it is not of a known form' };
  return { document: parsed.data };
}

/**
 * Whether judging the same inputs again gives the checks and the verdict that it states. What another version of
 * this program judged is believed, and what was judged by a policy that is not known (null).
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
    canonicalJson(report.checks) === canonicalJson(document.checks)
  );
}

function identityIn({ agent_key: publicKey, inputs }: EvidenceDocument): Facts['identity'] {
  const { enrolled_until: enrolledUntilMs } = inputs;
  if (publicKey === null || enrolledUntilMs === null) return null;
  return { publicKey, enrolledUntilMs };
}

function verdictOf({ verdict }: HealthReport): CycleVerdict {
  return verdict === 'verified' ? 'ok' : verdict;
}
