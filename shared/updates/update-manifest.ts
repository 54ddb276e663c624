/** The signed manifest of an agent release: its fields, and the texts that a validator signs. Pure. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { canonicalJson } from '../signing/canonical-json.ts';
import { HotkeyText, publicKeyOf } from '../signing/hotkey.ts';
import { KeyId } from '../signing/key-set.ts';
import { type Signer, signatureFromHex, toHex, verifySr25519 } from '../signing/sr25519.ts';
import { MAX_CHAIN, SignedRootKeySet } from './root-key-set.ts';

/** Prefix of the signed text, so that the signature cannot be used for another purpose. */
const SIGNED_AS = 'podwright-digest-v1\n';
const MAX_NOTES_CHARS = 2_000;
const MAX_PLATFORMS = 32;
const MAX_SIGNATURES = 8;
/** Limit for the whole response, bytes. */
export const MAX_DIGEST_BYTES: number = 64 * 1024;
/** Longest validity of a manifest. */
export const MAX_LIFETIME_MS: number = 7 * 86_400_000;
/** Largest step of the sequence that an agent accepts, so that a stolen key cannot use up all sequences. */
export const MAX_SEQUENCE_JUMP = 1_000;
/** Number of parts into which a rollout is divided. */
export const ROLLOUT_PARTS = 1_000;
/** Route of a validator's gateway for its central API. */
export const UPDATE_DIGEST_PATH = '/v1/updater/digest';

const EpochMs = z.int().min(0);
/** Only printable ASCII has exactly one spelling in canonical JSON. */
const Ascii = (max: number) => z.string().regex(new RegExp(`^[\\x20-\\x7e]{0,${max}}$`));

/** Digest of a manifest in a registry. */
export const Digest = z.string().regex(/^sha256:[0-9a-f]{64}$/, 'Not a digest like sha256:…');
export const VersionText = z
  .string()
  .regex(/^\d{1,6}(\.\d{1,6}){1,3}$/, 'Not a version like 1.2.3');
/** A repository of images without tag or digest: `ghcr.io/example/agent`. */
export const ImageName = z
  .string()
  .regex(/^[a-z0-9.-]+(:\d{1,5})?(\/[a-z0-9]+([._-]+[a-z0-9]+)*)+$/, 'Not like host/name')
  .max(200);
export const ImageTag = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/, 'Not a tag');
export const Permille = z.int().min(0).max(ROLLOUT_PARTS);

export const UpdateManifest = z.strictObject(
  described(
    {
      v: z.literal(1),
      kind: z.literal('image-digest'),
      image: ImageName,
      tag: ImageTag,
      digest: Digest,
      platforms: z
        .record(z.string().regex(/^[a-z0-9]+(\/[a-z0-9.]+){1,2}$/), Digest)
        .refine((each) => Object.keys(each).length <= MAX_PLATFORMS, `More than ${MAX_PLATFORMS}`),
      version: Ascii(128),
      sequence: z.int().min(1),
      minSequence: z.int().min(0),
      channel: Ascii(64),
      rolloutPermille: Permille,
      issuedAt: EpochMs,
      expiresAt: EpochMs,
      minAgent: VersionText,
      previousDigest: Digest.nullable(),
      rollbackTo: z
        .strictObject(
          described(
            { digest: Digest, reason: Ascii(MAX_NOTES_CHARS) },
            { digest: 'Digest to run.', reason: 'Reason for the rollback.' },
          ),
        )
        .optional(),
      notes: Ascii(MAX_NOTES_CHARS),
    },
    {
      v: 'Version of the format.',
      kind: 'Kind of update.',
      image: 'Repository of the image, without tag or digest.',
      tag: 'Tag of the release.',
      digest: 'Digest that the tag had at the release.',
      platforms:
        'Digest by platform, such as `linux/amd64`; empty if the registry has a single image.',
      version: 'Version of the release.',
      sequence: 'Number that increases with every release and rollback.',
      minSequence: 'Agents whose last accepted sequence is below this do not wait for the rollout.',
      channel: 'Name of the release channel.',
      rolloutPermille: 'Share of the agents that the rollout has reached, per mille.',
      issuedAt: 'Time of issue, milliseconds since the epoch.',
      expiresAt: 'Time of expiry, milliseconds since the epoch.',
      minAgent: 'Oldest version of the agent that can install the release.',
      previousDigest: 'Digest of the release before; null for the first.',
      rollbackTo:
        'The digest to run in place of `digest`, and the reason; absent without a rollback.',
      notes: 'Notes of the release.',
    },
  ),
);
export type UpdateManifest = z.output<typeof UpdateManifest>;

export const ManifestSignature = z.strictObject(
  described(
    { keyId: KeyId, ss58: HotkeyText, alg: z.literal('sr25519'), sig: z.string().max(130) },
    {
      keyId: 'Id of the key in the key set, or its ss58.',
      ss58: 'ss58 of the key.',
      alg: 'Algorithm of the signature.',
      sig: 'Signature of the manifest in canonical JSON, hex.',
    },
  ),
);
export type ManifestSignature = z.output<typeof ManifestSignature>;

/** Body of GET /updater/digest. Simple clients use only its first three fields. */
export const SignedDigest = z.object(
  described(
    {
      digest: Digest,
      timestamp: z.int().min(0),
      signature: z.string().max(130),
      manifest: UpdateManifest,
      signatures: z.array(ManifestSignature).min(1).max(MAX_SIGNATURES),
      keySets: z.array(SignedRootKeySet).max(MAX_CHAIN).optional(),
    },
    {
      digest: 'Digest of the release. Simple clients use only this, `timestamp` and `signature`.',
      timestamp: 'Time of the signature in seconds since the epoch.',
      signature:
        "sr25519 signature of `<digest>:<timestamp>` by the validator's hotkey, `0x` and hex.",
      manifest: 'The release in full.',
      signatures: 'Signatures of the manifest.',
      keySets:
        'Key sets that root keys have signed, oldest first: the keys that may sign manifests. Absent if the validator has published none.',
    },
  ),
);
export type SignedDigest = z.output<typeof SignedDigest>;

/** Returns the signed texts: that of the first three fields, and that of the manifest. */
export function textsOf(manifest: UpdateManifest) {
  return {
    digest: `${manifest.digest}:${secondsOf(manifest)}`,
    manifest: SIGNED_AS + canonicalJson(manifest),
  };
}

/** Combines the manifest with signatures of both texts, in hex. */
export function signedDigestOf(
  manifest: UpdateManifest,
  key: { keyId: string; ss58: string },
  signatures: { digest: string; manifest: string },
): SignedDigest {
  return {
    digest: manifest.digest,
    timestamp: secondsOf(manifest),
    signature: signatures.digest,
    manifest,
    signatures: [{ ...key, alg: 'sr25519', sig: signatures.manifest }],
  };
}

/** Signs the manifest. `keyId`: the key's id in key sets. */
export async function signUpdate(
  manifest: UpdateManifest,
  signer: Signer,
  keyId: string,
): Promise<SignedDigest> {
  const sign = async (text: string) => toHex(await signer.sign(new TextEncoder().encode(text)));
  const texts = textsOf(manifest);
  const signatures = { digest: await sign(texts.digest), manifest: await sign(texts.manifest) };
  return signedDigestOf(manifest, { keyId, ss58: signer.hotkey }, signatures);
}

/** Verifies the signature with the key that it names. Does not check whether that key is trusted. */
export function isSignatureGood(
  manifest: UpdateManifest,
  { ss58, sig }: ManifestSignature,
): boolean {
  const publicKey = publicKeyOf(ss58);
  const signature = signatureFromHex(sig);
  if (publicKey === null || signature === null) return false;
  return verifySr25519(new TextEncoder().encode(textsOf(manifest).manifest), signature, publicKey);
}

/** Returns the digest to run: that of the rollback, if there is one. */
export function targetDigestOf({ digest, rollbackTo }: UpdateManifest): string {
  return rollbackTo?.digest ?? digest;
}

const secondsOf = ({ issuedAt }: UpdateManifest) => Math.floor(issuedAt / 1_000);
