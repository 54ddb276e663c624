/** Whether a signed manifest is taken: the checks in their order (validator reference 4.2). Pure. */
import { createHash } from 'node:crypto';
import { compareVersions } from '#shared/runtime/version.ts';
import type { TrustedKey } from '#shared/signing/request-verifier.ts';
import {
  isSignatureGood,
  type ManifestSignature,
  ROLLOUT_PARTS,
  SignedDigest,
  targetDigestOf,
  type UpdateManifest,
} from '#shared/updates/update-manifest.ts';
import type { Target, UpdateRow } from './update.state.ts';

/** Whoever may command an agent says what it runs. */
const SIGNING_ROLE = 'validator-control';
/** How far a validator's clock may be ahead. */
const MAX_SKEW_MS = 600_000;

/** In the order in which they are looked for. */
export const REFUSALS = {
  MANIFEST_MALFORMED: 'the answer is no signed manifest',
  KEY_UNKNOWN: 'signed by no key that this agent trusts to command it',
  KEY_NOT_VALID: 'signed by a key outside its time',
  SIGNATURE_BAD: 'the signature is not that of its key',
  IMAGE_OTHER: 'it is of another image than AGENT_UPDATE_IMAGE',
  EXPIRED: 'it counts no more, or not yet',
  SEQUENCE_OLD: 'a newer one was taken before',
  AGENT_TOO_OLD: 'this agent is too old for it',
  PLATFORM_MISSING: 'it is not there for this platform',
  NOT_YET: 'it is not this agent’s turn yet',
  BACKING_OFF: 'it was rolled back here, and is tried again later',
} as const;
export type Refusal = keyof typeof REFUSALS;

export type RuleFacts = {
  keys: readonly TrustedKey[];
  nowMs: number;
  /** AGENT_UPDATE_IMAGE. */
  image: string;
  executorId: string;
  agentVersion: string;
  /** `linux/amd64`. */
  platform: string;
  /** Names of the image that runs, in that repository. */
  running: readonly string[];
  row: Pick<UpdateRow, 'sequence' | 'digest' | 'target' | 'denied_until_ms'>;
};

export type Ruling =
  | { outcome: 'take'; target: Target }
  /** It asks for what runs already. */
  | { outcome: 'same'; target: Target }
  | { outcome: 'refused'; reason: Refusal };

/** The first check that fails decides. */
export function judgeManifest(answer: unknown, facts: RuleFacts): Ruling {
  const parsed = SignedDigest.safeParse(answer);
  if (!parsed.success) return refused('MANIFEST_MALFORMED');
  const { manifest, signatures } = parsed.data;
  const problem = signatureProblem(manifest, signatures, facts) ?? manifestProblem(manifest, facts);
  if (problem !== null) return refused(problem);
  const target = { sequence: manifest.sequence, digest: targetDigestOf(manifest) };
  if (facts.running.includes(target.digest)) return { outcome: 'same', target };
  const reason = whyNotNow(manifest, target, facts);
  return reason === null ? { outcome: 'take', target } : refused(reason);
}

const refused = (reason: Refusal): Ruling => ({ outcome: 'refused', reason });

/** One good signature is enough; of several bad ones the last problem is told. */
function signatureProblem(
  manifest: UpdateManifest,
  signatures: readonly ManifestSignature[],
  { keys, nowMs }: RuleFacts,
): Refusal | null {
  let problem: Refusal = 'KEY_UNKNOWN';
  for (const signature of signatures) {
    const key = keys.find(({ hotkey }) => hotkey === signature.ss58);
    const isNamed = [key?.keyId, key?.hotkey].includes(signature.keyId);
    if (key === undefined || !isNamed || !key.roles.includes(SIGNING_ROLE)) continue;
    const { notBeforeMs = nowMs, notAfterMs = nowMs } = key;
    if (nowMs < notBeforeMs || nowMs > notAfterMs) problem = 'KEY_NOT_VALID';
    else if (!isSignatureGood(manifest, signature)) problem = 'SIGNATURE_BAD';
    else return null;
  }
  return problem;
}

function manifestProblem(
  manifest: UpdateManifest,
  { image, nowMs, row }: RuleFacts,
): Refusal | null {
  if (manifest.image !== image) return 'IMAGE_OTHER';
  const isEarly = manifest.issuedAt > nowMs + MAX_SKEW_MS;
  // A frozen answer, kept by somebody in between, would hold this agent where it is.
  if (isEarly || manifest.expiresAt <= nowMs) return 'EXPIRED';
  return isOld(manifest, row) ? 'SEQUENCE_OLD' : null;
}

/**
 * No downgrade: an older manifest is never taken, not even one that goes back, or whoever kept it could undo what came
 * after. Under the number that was taken last only the same digest counts, or a signed way back.
 */
function isOld(
  manifest: UpdateManifest,
  { sequence, digest }: Pick<UpdateRow, 'sequence' | 'digest'>,
): boolean {
  if (manifest.sequence !== sequence) return manifest.sequence < sequence;
  return targetDigestOf(manifest) !== digest && manifest.rollbackTo === undefined;
}

function whyNotNow(manifest: UpdateManifest, target: Target, facts: RuleFacts): Refusal | null {
  const { platforms, minAgent, rolloutPermille, rollbackTo, minSequence, sequence } = manifest;
  const { row, nowMs } = facts;
  if ((compareVersions(facts.agentVersion, minAgent) ?? 0) < 0) return 'AGENT_TOO_OLD';
  const listed = Object.keys(platforms);
  if (rollbackTo === undefined && listed.length > 0 && !listed.some(isOf(facts.platform))) {
    return 'PLATFORM_MISSING';
  }
  const isUrgent = rollbackTo !== undefined || row.sequence < minSequence;
  if (!isUrgent && placeOf(facts.executorId, sequence) >= rolloutPermille) return 'NOT_YET';
  const isDenied = row.target?.digest === target.digest && nowMs < row.denied_until_ms;
  return isDenied ? 'BACKING_OFF' : null;
}

/** `linux/arm64` is `linux/arm64/v8` too. */
const isOf = (platform: string) => (listed: string) =>
  listed === platform || listed.startsWith(`${platform}/`);

/** Where in a rollout of a thousand parts an agent stands: by chance, and another place for each sequence. */
export function placeOf(executorId: string, sequence: number): number {
  const hash = createHash('sha256').update(`${executorId}${sequence}`).digest('hex');
  return Number(BigInt(`0x${hash}`) % BigInt(ROLLOUT_PARTS));
}
