/** Which SSH keys a new pod gets. Pure. */
import { ApiError } from '#shared/errors.ts';
import type { PodSshKey } from '../pods/pod.schemas.ts';

/** Those of the request, named like the account's where they are the account's; else all of the account's. */
export function chosenKeys(
  given: string | readonly string[] | null | undefined,
  registered: readonly PodSshKey[],
): PodSshKey[] {
  const wanted = [given ?? []].flat().map((key) => key.trim());
  const present = [...new Set(wanted)].filter((key) => key !== '');
  const keys =
    present.length === 0
      ? registered.map(({ id, name, public_key }) => ({ id, name, public_key }))
      : present.map((key) => namedKey(key, registered));
  if (keys.length > 0) return keys;
  throw new ApiError('bad_request', 'There is no SSH key to put on the pod', {
    hint: 'Register one with POST /ssh-keys or send user_public_key.',
  });
}

function namedKey(publicKey: string, registered: readonly PodSshKey[]): PodSshKey {
  const known = registered.find((key) => sameKey(key.public_key, publicKey));
  return { id: known?.id ?? null, name: known?.name ?? '', public_key: publicKey };
}

/** Type and key material; the comment does not count. */
function sameKey(a: string, b: string): boolean {
  const material = (key: string) => key.trim().split(/\s+/).slice(0, 2).join(' ');
  return material(a) === material(b);
}
