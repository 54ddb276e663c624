/** Which SSH keys a new pod gets. Pure. */
import { ApiError } from '#shared/runtime/errors.ts';
import { parsePublicKey } from '../../accounts/ssh-keys/public-key.ts';
import type { SshKey } from '../../platform/database/tables.ts';
import type { PodSshKey } from '../pods/pod.schemas.ts';

/** Those of the request, named like the account's where they are the account's; else all of the account's. */
export function chosenKeys(
  given: string | readonly string[] | null | undefined,
  registered: readonly SshKey[],
): PodSshKey[] {
  const wanted = [given ?? []].flat().filter((key) => key.trim() !== '');
  const keys =
    wanted.length === 0
      ? registered.map(({ id, name, public_key }) => ({ id, name, public_key }))
      : distinct(wanted.map((key) => namedKey(key, registered)));
  if (keys.length > 0) return keys;
  throw new ApiError('bad_request', 'There is no SSH key to put on the pod', {
    hint: 'Register one with POST /ssh-keys or send user_public_key.',
  });
}

function namedKey(pasted: string, registered: readonly SshKey[]): PodSshKey {
  const parsed = parsePublicKey(pasted);
  if ('problem' in parsed) {
    throw new ApiError('bad_request', `user_public_key: ${parsed.problem}`, {
      hint: 'Send the line of the .pub file as it is.',
    });
  }
  const { text, fingerprint } = parsed.key;
  const known = registered.find((key) => key.fingerprint === fingerprint);
  return { id: known?.id ?? null, name: known?.name ?? '', public_key: text };
}

function distinct(keys: readonly PodSshKey[]): PodSshKey[] {
  return [...new Map(keys.map((key) => [key.public_key, key])).values()];
}
