/** Decides whether a record of a validator is what the validator signed. Pure; the caller verifies and hashes. */
import type { SignedEpoch, SignedEvidence } from '../api/api.gen.ts';

export type ProofStep = { text: string; isGood: boolean | null };

/** Result of a verification. `isGood` is null if the browser could not verify everything. */
export type Proof = { isGood: boolean | null; signer: string | null; steps: readonly ProofStep[] };

export type ProofPorts = {
  isSignedBy(signer: string, text: string, signature: string): boolean;
  /** Null if the browser does not offer it. */
  sha256Hex(text: string): Promise<string | null>;
};

type Members = Readonly<Record<string, unknown>>;

/** Verifies the signature over the header or the document, and that both are those of the record. */
export async function proveEvidence(record: SignedEvidence, ports: ProofPorts): Promise<Proof> {
  const { header, document, signature, signed_as: signedAs } = record;
  const signed = header ?? document;
  const members = signed === null ? null : membersOf(signed);
  const signer = textOf(members, 'validator');
  const steps = [
    signatureStep(signer, signed === null ? null : signedAs + signed, signature, ports),
    {
      text: 'The signed text states the node, the number and the verdict that this page shows.',
      isGood:
        members?.['executor_id'] === record.executor_id &&
        members['seq'] === record.seq &&
        members['verdict'] === record.verdict &&
        (header === null || members['id'] === record.id),
    },
    document === null
      ? {
          text: 'The document was dropped. Its header states its hash, so its verdict can still be verified.',
          isGood: record.dropped_at !== null,
        }
      : await hashStep('The hash of the document is its id.', document, record.id, ports),
  ];
  return proofOf(signer, steps);
}

/** Verifies the signature over the claim of an epoch, and that its payload is the one that the claim names. */
export async function proveEpoch(record: SignedEpoch, ports: ProofPorts): Promise<Proof> {
  const { claim, payload, signature, signed_as: signedAs, validator } = record;
  const members = membersOf(claim);
  const payloadHash = textOf(members, 'payload_hash');
  const steps = [
    signatureStep(validator, signedAs + claim, signature, ports),
    {
      text: 'The signed claim states the number and the result that this page shows.',
      isGood:
        members?.['number'] === record.number && members['result_hash'] === record.result_hash,
    },
    await hashStep('The hash of the claim is the id of the epoch.', claim, record.id, ports),
    await hashStep(
      'The hash of the posted weights is the one in the claim.',
      payload,
      payloadHash,
      ports,
    ),
  ];
  return proofOf(validator, steps);
}

function signatureStep(
  signer: string | null,
  text: string | null,
  signature: string | null,
  { isSignedBy }: ProofPorts,
): ProofStep {
  const isGood =
    signer !== null && text !== null && signature !== null && isSignedBy(signer, text, signature);
  return { text: 'The signature matches the signed text and the key.', isGood };
}

async function hashStep(
  text: string,
  content: string,
  expected: string | null,
  { sha256Hex }: ProofPorts,
): Promise<ProofStep> {
  const hash = await sha256Hex(content);
  return { text, isGood: hash === null ? null : hash === expected };
}

function proofOf(signer: string | null, steps: readonly ProofStep[]): Proof {
  const results = steps.map(({ isGood }) => isGood);
  const isGood = results.includes(false) ? false : results.includes(null) ? null : true;
  return { isGood, signer, steps };
}

function membersOf(text: string): Members | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Members) : null;
  } catch {
    return null;
  }
}

function textOf(members: Members | null, name: string): string | null {
  const value = members?.[name];
  return typeof value === 'string' ? value : null;
}
