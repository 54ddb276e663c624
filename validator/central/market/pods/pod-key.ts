/** An SSH key of a pod: its form in the row and in responses. Pure. */
import { createHash } from 'node:crypto';
import { parsePublicKey } from '../../accounts/ssh-keys/public-key.ts';
import type { Pod } from '../../platform/database/tables.ts';
import type { PodSshKey } from './pod.schemas.ts';

/** A key as the pod's row stores it; `id` is null for a key that is not registered with the account. */
export type PodKey = Omit<PodSshKey, 'id'> & { id: string | null };

/** An unregistered key gets an id that is derived from the key, because clients require an id. */
export function keyOnWire(key: PodKey): PodSshKey {
  return { ...key, id: key.id ?? derivedId(keyIdentity(key)) };
}

/** A version 8 UUID (RFC 9562) from the SHA-256 of `text`. */
function derivedId(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
  ];
  return [...parts, hex.slice(20, 32)].join('-');
}

export function podKeysOf(pod: Pick<Pod, 'ssh_keys_json'>): PodKey[] {
  return JSON.parse(pod.ssh_keys_json) as PodKey[];
}

/** Returns the same text for keys that differ only in their comment. */
export function keyIdentity({ public_key }: Pick<PodKey, 'public_key'>): string {
  const parsed = parsePublicKey(public_key);
  return 'key' in parsed ? parsed.key.fingerprint : public_key;
}
