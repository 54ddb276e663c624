/** The keys that a pod lets in, and whether a client has proved to hold one of them. Pure. */
import { createHash } from 'node:crypto';
import ssh2, { type PublicKeyAuthContext } from 'ssh2';
import { parseHardwareKey } from './hardware-key.ts';

const RSA_HASHES = ['sha256', 'sha512'];

export type AuthorizedKey = {
  blob: Buffer;
  fingerprint: string;
  /** Whether `signature` is this key's over `blob`; `hash` is what an RSA client says it used. */
  verify(blob: Buffer, signature: Buffer, hash: string | undefined): boolean;
};

/** Lines that are no keys that we can check are left out. */
export function parseAuthorizedKeys(lines: readonly string[]): AuthorizedKey[] {
  return lines.flatMap((line) => {
    const key = parseHardwareKey(line) ?? parseSoftwareKey(line);
    return key === null ? [] : [{ ...key, fingerprint: fingerprintOf(key.blob) }];
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
export function hasSigned(context: PublicKeyAuthContext, key: AuthorizedKey): boolean {
  const { blob, signature, hashAlgo } = context;
  if (blob === undefined || signature === undefined) return false;
  return key.verify(blob, signature, hashAlgo);
}

function parseSoftwareKey(line: string): Omit<AuthorizedKey, 'fingerprint'> | null {
  const parsed = ssh2.utils.parseKey(line);
  // Several keys or a private one never come of one public line.
  if (parsed instanceof Error || Array.isArray(parsed) || parsed.isPrivateKey()) return null;
  if (parsed.type === 'ssh-dss') return null;
  return {
    blob: parsed.getPublicSSH(),
    verify(blob, signature, hash) {
      // Such keys may sign with SHA-1 too, which can be forged.
      if (parsed.type === 'ssh-rsa' && !RSA_HASHES.includes(hash ?? '')) return false;
      return parsed.verify(blob, signature, hash) === true;
    },
  };
}

function fingerprintOf(blob: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
}
