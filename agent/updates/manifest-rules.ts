/** The rules by which an agent accepts or refuses a signed manifest. README.md lists them in their order. Pure. */
import { createHash } from 'node:crypto';
import { compareVersions } from '#shared/runtime/version.ts';
import { isKeyValidAt, type TrustedKey } from '#shared/signing/request-verifier.ts';
import {
  keysOf,
  type RootKeySet,
  type RootKeys,
  SIGNING_ROLE,
} from '#shared/updates/root-key-set.ts';
import {
  isSignatureGood,
  MAX_LIFETIME_MS,
  MAX_SEQUENCE_JUMP,
  type ManifestSignature,
  ROLLOUT_PARTS,
  SignedDigest,
  targetDigestOf,
  type UpdateManifest,
} from '#shared/updates/update-manifest.ts';
import { keySetOf, type Trust, trustAfter } from './key-trust.ts';
import type { Target, UpdateRow } from './update.state.ts';

/** Largest difference by which a validator's clock may be ahead. */
const MAX_SKEW_MS = 600_000;
/** Limits for manifests without a key set. */
const ANY_MANIFEST = { since: 0, min_sequence: 0 };

/** Reasons for a refusal, in the order in which the rules are applied. */
export const REFUSALS = {
  MANIFEST_MALFORMED: 'the answer is not a signed manifest',
  KEY_SET_REFUSED: 'the newest key set is not signed by enough trusted root keys',
  KEY_SET_MISSING: 'no key set of AGENT_ROOT_KEYS was received yet',
  KEY_SET_EXPIRED: 'the accepted key set has expired, and no newer one was received',
  KEY_UNKNOWN: 'signed by no key that may command this agent',
  KEY_NOT_VALID: 'signed by a key that is not valid now',
  SIGNATURE_BAD: 'the signature does not match its key',
  IMAGE_OTHER: 'the manifest names another image than AGENT_UPDATE_IMAGE',
  EXPIRED: 'the manifest has expired, or is not valid yet',
  LIFETIME_TOO_LONG: 'the manifest is valid for more than seven days',
  SEQUENCE_OLD: 'a newer manifest was accepted before, or the key set requires a newer one',
  SEQUENCE_JUMP: 'the sequence is too far above that of the last accepted manifest',
  AGENT_TOO_OLD: 'this agent is too old for the manifest',
  PLATFORM_MISSING: 'the manifest has no image for this platform',
  NOT_YET: 'the rollout has not reached this agent yet',
  BACKING_OFF: 'the version was rolled back on this host, and is retried later',
} as const;
export type Refusal = keyof typeof REFUSALS;

export type ManifestFacts = {
  /** Keys that the configuration trusts. They sign manifests until a key set was accepted. */
  keys: readonly TrustedKey[];
  /** AGENT_ROOT_KEYS; null if it is not set. */
  root: RootKeys | null;
  nowMs: number;
  /** AGENT_UPDATE_IMAGE. */
  image: string;
  executorId: string;
  agentVersion: string;
  /** The host's platform, such as `linux/amd64`. */
  platform: string;
  /** Digests of the running image in that repository. */
  running: readonly string[];
  row: Pick<UpdateRow, 'sequence' | 'digest' | 'target' | 'denied_until_ms' | 'trust'>;
};

/** The facts after the key sets of the answer were applied. */
type RulingFacts = ManifestFacts & { keySet: RootKeySet | null };

export type Ruling =
  | { outcome: 'accepted'; target: Target }
  /** The required version already runs. */
  | { outcome: 'current'; target: Target }
  | { outcome: 'refused'; reason: Refusal };

export type Judgement = {
  ruling: Ruling;
  /** Stored whatever the ruling is: a valid key set counts even if the manifest is refused. */
  trust: Trust | null;
  /** True if a new key set makes the agent forget the sequence that it accepted, and an update in progress. */
  isReset: boolean;
};

/** Applies the answer's key sets, then the rules in order; the first violated one determines the reason. */
export function judgeAnswer(answer: unknown, facts: ManifestFacts): Judgement {
  const parsed = SignedDigest.safeParse(answer);
  if (!parsed.success) {
    return { ruling: refused('MANIFEST_MALFORMED'), trust: facts.row.trust, isReset: false };
  }
  const { trust, isReset, isRefused } = trustAfter(
    parsed.data.keySets ?? [],
    facts.row.trust,
    facts,
  );
  const row = isReset ? { ...facts.row, sequence: 0, digest: null } : facts.row;
  const ruling = isRefused
    ? refused('KEY_SET_REFUSED')
    : judgeManifest(parsed.data, { ...facts, row, keySet: keySetOf(trust) });
  return { ruling, trust, isReset };
}

function judgeManifest({ manifest, signatures }: SignedDigest, facts: RulingFacts): Ruling {
  const problem =
    keySetProblem(facts) ??
    signatureProblem(manifest, signatures, facts) ??
    manifestProblem(manifest, facts);
  if (problem !== null) return refused(problem);
  const target = { sequence: manifest.sequence, digest: targetDigestOf(manifest) };
  if (facts.running.includes(target.digest)) return { outcome: 'current', target };
  const reason = rolloutProblem(manifest, target, facts);
  return reason === null ? { outcome: 'accepted', target } : refused(reason);
}

const refused = (reason: Refusal): Ruling => ({ outcome: 'refused', reason });

/** The expiry of the set prevents a proxy from withholding the set that revokes a stolen key. */
function keySetProblem({ root, keySet, nowMs }: RulingFacts): Refusal | null {
  if (keySet === null) return root === null ? null : 'KEY_SET_MISSING';
  return keySet.expires_at <= nowMs ? 'KEY_SET_EXPIRED' : null;
}

/** Returns null if any signature is valid, else the problem of the last signature by a trusted key. */
function signatureProblem(
  manifest: UpdateManifest,
  signatures: readonly ManifestSignature[],
  { keys: configured, keySet, nowMs }: RulingFacts,
): Refusal | null {
  const keys = keySet === null ? configured : keysOf(keySet);
  let problem: Refusal = 'KEY_UNKNOWN';
  for (const signature of signatures) {
    const key = keys.find(({ hotkey }) => hotkey === signature.ss58);
    const isNamed = [key?.keyId, key?.hotkey].includes(signature.keyId);
    if (key === undefined || !isNamed || !key.roles.includes(SIGNING_ROLE)) continue;
    if (!isKeyValidAt(key, nowMs)) problem = 'KEY_NOT_VALID';
    else if (!isSignatureGood(manifest, signature)) problem = 'SIGNATURE_BAD';
    else return null;
  }
  return problem;
}

function manifestProblem(
  manifest: UpdateManifest,
  { image, nowMs, row, keySet }: RulingFacts,
): Refusal | null {
  const { issuedAt: issuedMs, expiresAt: expiresMs, sequence } = manifest;
  if (manifest.image !== image) return 'IMAGE_OTHER';
  // The expiry prevents a proxy from replaying an old answer to keep the agent on its version.
  if (issuedMs > nowMs + MAX_SKEW_MS || expiresMs <= nowMs) return 'EXPIRED';
  if (expiresMs - issuedMs > MAX_LIFETIME_MS) return 'LIFETIME_TOO_LONG';
  const { since: sinceMs, min_sequence: least } = keySet?.manifests ?? ANY_MANIFEST;
  if (issuedMs < sinceMs || sequence < least || isOld(manifest, row)) return 'SEQUENCE_OLD';
  const base = Math.max(row.sequence, least);
  // `base` is 0 for a new agent whose validator has no key sets: the agent then accepts any sequence.
  return base > 0 && sequence > base + MAX_SEQUENCE_JUMP ? 'SEQUENCE_JUMP' : null;
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
  facts: RulingFacts,
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
