/** What a validator signs of the agent's releases, and the one text that is signed (validator reference 4.1, 4.2). Pure. */
import { z } from 'zod';
import { canonicalJson } from '../signing/canonical-json.ts';
import type { Hotkey } from '../signing/hotkey.ts';
import { publicKeyOf } from '../signing/hotkey.ts';
import { type Signer, signatureFromHex, toHex, verifySr25519 } from '../signing/sr25519.ts';

/** So that a signature can mean nothing else. */
const SIGNED_AS = 'podwright-digest-v1\n';
const MAX_NOTES_CHARS = 2_000;
const MAX_PLATFORMS = 32;
const MAX_SIGNATURES = 8;
/** Of the whole answer. */
export const MAX_DIGEST_BYTES: number = 64 * 1024;
/** Shares of a rollout are in parts of so many. */
export const ROLLOUT_PARTS = 1_000;
/** Where a validator's gateway tells its central API. */
export const UPDATE_DIGEST_PATH = '/v1/updater/digest';

const EpochMs = z.int().min(0);
/** Canonical JSON has one spelling of printable ASCII alone. */
const Ascii = (max: number) => z.string().regex(new RegExp(`^[\\x20-\\x7e]{0,${max}}$`));

/** What a registry calls a manifest by. */
export const Digest = z.string().regex(/^sha256:[0-9a-f]{64}$/, 'Not a digest like sha256:…');
export const VersionText = z
  .string()
  .regex(/^\d{1,6}(\.\d{1,6}){1,3}$/, 'Numbers with points between');
/** A repository of images without tag or digest: `ghcr.io/example/agent`. */
export const ImageName = z
  .string()
  .regex(/^[a-z0-9.-]+(:\d{1,5})?(\/[a-z0-9]+([._-]+[a-z0-9]+)*)+$/, 'Not like host/name')
  .max(200);
export const ImageTag = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/, 'Not a tag');
export const Permille = z.int().min(0).max(ROLLOUT_PARTS);

export const UpdateManifest = z.strictObject({
  v: z.literal(1),
  kind: z.literal('image-digest'),
  image: ImageName,
  tag: ImageTag,
  /** What the tag names now. */
  digest: Digest,
  /** Digests by `linux/amd64`, …; empty where the registry has one image and no index. */
  platforms: z
    .record(z.string().regex(/^[a-z0-9]+(\/[a-z0-9.]+){1,2}$/), Digest)
    .refine((each) => Object.keys(each).length <= MAX_PLATFORMS, `More than ${MAX_PLATFORMS}`),
  version: Ascii(128),
  /** Higher for everything that came later. */
  sequence: z.int().min(1),
  /** Whoever has taken none as high is not asked to wait for its share. */
  minSequence: z.int().min(0),
  channel: Ascii(64),
  /** How many of a thousand agents may take it already. */
  rolloutPermille: Permille,
  issuedAt: EpochMs,
  expiresAt: EpochMs,
  /** Oldest agent that can take it. */
  minAgent: VersionText,
  previousDigest: Digest.nullable(),
  /** What to run instead of `digest`, and why. */
  rollbackTo: z.strictObject({ digest: Digest, reason: Ascii(MAX_NOTES_CHARS) }).optional(),
  notes: Ascii(MAX_NOTES_CHARS),
});
export type UpdateManifest = z.output<typeof UpdateManifest>;

/** As key sets have them; an ss58 is one too. */
export const KeyId = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, 'Not the id of a key');

/** A hotkey that is shown as it came: answers have no room for transforms. */
const Ss58 = z.string().refine((text) => publicKeyOf(text) !== null, 'Not an ss58 address');

export const ManifestSignature = z.strictObject({
  /** The key's id in the key set, or its ss58. */
  keyId: KeyId,
  ss58: Ss58,
  alg: z.literal('sr25519'),
  sig: z.string().max(130),
});
export type ManifestSignature = z.output<typeof ManifestSignature>;

/** GET /updater/digest. Its first three members alone are what plain consumers know. */
export const SignedDigest = z.object({
  digest: Digest,
  /** Seconds. */
  timestamp: z.int().min(0),
  /** Over `<digest>:<timestamp>`. */
  signature: z.string().max(130),
  manifest: UpdateManifest,
  signatures: z.array(ManifestSignature).min(1).max(MAX_SIGNATURES),
});
export type SignedDigest = z.output<typeof SignedDigest>;

/** `manifest` as `signer` vouches for it; `keyId` is what key sets call the signer's key. */
export async function signUpdate(
  manifest: UpdateManifest,
  signer: Signer,
  keyId: string,
): Promise<SignedDigest> {
  const { plain, whole } = updateTexts(manifest);
  const sign = async (text: string) => toHex(await signer.sign(new TextEncoder().encode(text)));
  const signed = { plain: await sign(plain), whole: await sign(whole) };
  return updateSignedBy({ ss58: signer.hotkey, keyId }, manifest, signed);
}

/** The texts that are signed: for consumers of the digest alone, and of the whole manifest. */
export function updateTexts(manifest: UpdateManifest): { plain: string; whole: string } {
  return { plain: `${manifest.digest}:${timestampOf(manifest)}`, whole: textOf(manifest) };
}

/** The manifest with the signatures of its texts, hex. */
export function updateSignedBy(
  { ss58, keyId }: { ss58: Hotkey; keyId: string },
  manifest: UpdateManifest,
  signed: { plain: string; whole: string },
): SignedDigest {
  return {
    digest: manifest.digest,
    timestamp: timestampOf(manifest),
    signature: signed.plain,
    manifest,
    signatures: [{ keyId, ss58, alg: 'sr25519', sig: signed.whole }],
  };
}

const timestampOf = ({ issuedAt }: UpdateManifest): number => Math.floor(issuedAt / 1_000);

/** Whether the signature is that of its key over this manifest; whose key it is, and whether it counts, is not asked. */
export function isSignatureGood(
  manifest: UpdateManifest,
  { ss58, sig }: ManifestSignature,
): boolean {
  const publicKey = publicKeyOf(ss58);
  const signature = signatureFromHex(sig);
  if (publicKey === null || signature === null) return false;
  return verifySr25519(new TextEncoder().encode(textOf(manifest)), signature, publicKey);
}

/** What to run: the way back where there is one. */
export function targetDigestOf({ digest, rollbackTo }: UpdateManifest): string {
  return rollbackTo?.digest ?? digest;
}

function textOf(manifest: UpdateManifest): string {
  return SIGNED_AS + canonicalJson(manifest);
}
