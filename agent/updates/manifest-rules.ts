/** The rules by which an agent accepts or refuses a signed manifest. README.md lists them in their order. Pure. */
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

/** Role of the keys that may sign manifests: the keys that may control agents. */
const SIGNING_ROLE = 'validator-control';
/** Largest difference by which a validator's clock may be ahead. */
const MAX_SKEW_MS = 600_000;

/** Reasons for a refusal, in the order in which the rules are applied. */
export const REFUSALS = {
  MANIFEST_MALFORMED: 'the answer is not a signed manifest',
  KEY_UNKNOWN: 'signed by no key that may command this agent',
  KEY_NOT_VALID: 'signed by a key that is not valid now',
  SIGNATURE_BAD: 'the signature does not match its key',
  IMAGE_OTHER: 'the manifest names another image than AGENT_UPDATE_IMAGE',
  EXPIRED: 'the manifest has expired, or is not valid yet',
  SEQUENCE_OLD: 'a newer manifest was accepted before',
  AGENT_TOO_OLD: 'this agent is too old for the manifest',
  PLATFORM_MISSING: 'the manifest has no image for this platform',
  NOT_YET: 'the rollout has not reached this agent yet',
  BACKING_OFF: 'the version was rolled back on this host, and is retried later',
} as const;
export type Refusal = keyof typeof REFUSALS;

export type ManifestFacts = {
  keys: readonly TrustedKey[];
  nowMs: number;
  /** AGENT_UPDATE_IMAGE. */
  image: string;
  executorId: string;
  agentVersion: string;
  /** The host's platform, such as `linux/amd64`. */
  platform: string;
  /** Digests of the running image in that repository. */
  running: readonly string[];
  row: Pick<UpdateRow, 'sequence' | 'digest' | 'target' | 'denied_until_ms'>;
};

export type Ruling =
  | { outcome: 'accepted'; target: Target }
  /** The required version already runs. */
  | { outcome: 'current'; target: Target }
  | { outcome: 'refused'; reason: Refusal };

/** Applies the rules in order; the first violated one determines the reason. */
export function judgeManifest(answer: unknown, facts: ManifestFacts): Ruling {
  const parsed = SignedDigest.safeParse(answer);
  if (!parsed.success) return refused('MANIFEST_MALFORMED');
  const { manifest, signatures } = parsed.data;
  const problem = signatureProblem(manifest, signatures, facts) ?? manifestProblem(manifest, facts);
  if (problem !== null) return refused(problem);
  const target = { sequence: manifest.sequence, digest: targetDigestOf(manifest) };
  if (facts.running.includes(target.digest)) return { outcome: 'current', target };
  const reason = rolloutProblem(manifest, target, facts);
  return reason === null ? { outcome: 'accepted', target } : refused(reason);
}

const refused = (reason: Refusal): Ruling => ({ outcome: 'refused', reason });

/** Returns null if any signature is valid, else the problem of the last signature by a trusted key. */
function signatureProblem(
  manifest: UpdateManifest,
  signatures: readonly ManifestSignature[],
  { keys, nowMs }: ManifestFacts,
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
  { image, nowMs, row }: ManifestFacts,
): Refusal | null {
  if (manifest.image !== image) return 'IMAGE_OTHER';
  const isEarly = manifest.issuedAt > nowMs + MAX_SKEW_MS;
  // The expiry prevents a proxy from replaying an old answer to keep the agent on its version.
  if (isEarly || manifest.expiresAt <= nowMs) return 'EXPIRED';
  return isOld(manifest, row) ? 'SEQUENCE_OLD' : null;
}

/**
 * Returns true for a manifest that would downgrade the agent. A lower sequence is never accepted, not even for a
 * rollback, since a replay could undo later versions. With the last accepted sequence, only the same digest or a
 * rollback is accepted.
 */
function isOld(
  manifest: UpdateManifest,
  { sequence, digest }: Pick<UpdateRow, 'sequence' | 'digest'>,
): boolean {
  if (manifest.sequence !== sequence) return manifest.sequence < sequence;
  return targetDigestOf(manifest) !== digest && manifest.rollbackTo === undefined;
}

function rolloutProblem(
  manifest: UpdateManifest,
  target: Target,
  facts: ManifestFacts,
): Refusal | null {
  const { platforms, minAgent, rolloutPermille, rollbackTo, minSequence, sequence } = manifest;
  const { row, nowMs } = facts;
  if ((compareVersions(facts.agentVersion, minAgent) ?? 0) < 0) return 'AGENT_TOO_OLD';
  const listed = Object.keys(platforms);
  if (rollbackTo === undefined && listed.length > 0 && !listed.some(isOf(facts.platform))) {
    return 'PLATFORM_MISSING';
  }
  const isUrgent = rollbackTo !== undefined || row.sequence < minSequence;
  if (!isUrgent && rolloutPosition(facts.executorId, sequence) >= rolloutPermille) return 'NOT_YET';
  const isDenied = row.target?.digest === target.digest && nowMs < row.denied_until_ms;
  return isDenied ? 'BACKING_OFF' : null;
}

/** Returns true if `listed` is the platform or a variant: `linux/arm64` includes `linux/arm64/v8`. */
const isOf = (platform: string) => (listed: string) =>
  listed === platform || listed.startsWith(`${platform}/`);

/** Returns the agent's position in a rollout of a thousand parts: pseudorandom, and different for each sequence. */
export function rolloutPosition(executorId: string, sequence: number): number {
  const hash = createHash('sha256').update(`${executorId}${sequence}`).digest('hex');
  return Number(BigInt(`0x${hash}`) % BigInt(ROLLOUT_PARTS));
}
