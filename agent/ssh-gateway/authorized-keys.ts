/** The keys that a pod lets in, and whether a client has proved to hold one of them. Pure. */
import { createHash } from 'node:crypto';
import ssh2, { type ParsedKey, type PublicKeyAuthContext } from 'ssh2';

const RSA_HASHES = ['sha256', 'sha512'];

export type AuthorizedKey = { key: ParsedKey; blob: Buffer; fingerprint: string };

/** Lines that are no keys that we can check (hardware keys, for one) are left out. */
export function parseAuthorizedKeys(lines: readonly string[]): AuthorizedKey[] {
  return lines.flatMap((line) => {
    const parsed = ssh2.utils.parseKey(line);
    // Several keys or a private one never come of one public line.
    if (parsed instanceof Error || Array.isArray(parsed) || parsed.isPrivateKey()) return [];
    if (parsed.type === 'ssh-dss') return [];
    const blob = parsed.getPublicSSH();
    return [{ key: parsed, blob, fingerprint: fingerprintOf(blob) }];
  });
}

/** The key that the client speaks of, if it is one of `keys`. */
export function keyMeant(
  context: PublicKeyAuthContext,
  keys: readonly AuthorizedKey[],
): AuthorizedKey | null {
  return keys.find(({ blob }) => blob.equals(context.key.data)) ?? null;
}

/** True when the client has signed this very session with it. */
export function hasSigned(context: PublicKeyAuthContext, { key }: AuthorizedKey): boolean {
  const { blob, signature, hashAlgo } = context;
  if (blob === undefined || signature === undefined) return false;
  // Such keys may sign with SHA-1 too, which can be forged.
  if (key.type === 'ssh-rsa' && !RSA_HASHES.includes(hashAlgo ?? '')) return false;
  return key.verify(blob, signature, hashAlgo) === true;
}

function fingerprintOf(blob: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
}
