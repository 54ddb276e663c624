/** More SSH keys for a pod that is there already. */
import { ApiError } from '#shared/runtime/errors.ts';
import { type PublicKey, parsePublicKey } from '../../accounts/ssh-keys/public-key.ts';
import { listForAccount, requireOwnSshKey } from '../../accounts/ssh-keys/ssh-key.service.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import type { AddSshKeysRequest, PodSshKey } from './pod.schemas.ts';
import { changeUnlessGoing } from './pod-removal.ts';

/** What an agent takes for one pod. */
const MAX_KEYS_PER_POD = 50;

export type KeysAdded = { pod: Pod; added: number; alreadyPresent: number };

/** The keys of a stored pod. */
export function podKeysOf(pod: Pick<Pod, 'ssh_keys_json'>): PodSshKey[] {
  return JSON.parse(pod.ssh_keys_json) as PodSshKey[];
}

/** Stored only: the sync makes the agent agree with the row. */
export async function addKeys(
  tx: Db,
  pod: Pod,
  request: AddSshKeysRequest,
  nowMs: number,
): Promise<KeysAdded> {
  const wanted = await keysWanted(tx, pod.account_id, request);
  const { keys, added } = mergeKeys(podKeysOf(pod), wanted);
  if (keys.length > MAX_KEYS_PER_POD) {
    throw new ApiError('bad_request', `A pod has at most ${MAX_KEYS_PER_POD} SSH keys`);
  }
  const change = { ssh_keys_json: JSON.stringify(keys), updated_at: nowMs };
  await changeUnlessGoing(tx, pod, change);
  return { pod: { ...pod, ...change }, added, alreadyPresent: wanted.length - added };
}

/** Those that are not there yet, at the end; a comment makes no other key of it. Pure. */
export function mergeKeys(
  present: readonly PodSshKey[],
  wanted: readonly PodSshKey[],
): { keys: PodSshKey[]; added: number } {
  const keys = [...present];
  const known = new Set(present.map(identityOf));
  for (const key of wanted) {
    if (known.has(identityOf(key))) continue;
    known.add(identityOf(key));
    keys.push(key);
  }
  return { keys, added: keys.length - present.length };
}

async function keysWanted(
  tx: Db,
  accountId: string,
  request: AddSshKeysRequest,
): Promise<PodSshKey[]> {
  const registered = await listForAccount(tx, accountId);
  const byId: PodSshKey[] = [];
  for (const id of request.ssh_key_ids ?? []) {
    const { name, public_key } = await requireOwnSshKey(tx, accountId, id);
    byId.push({ id, name, public_key });
  }
  const given = (request.public_keys ?? []).map(({ text, fingerprint }: PublicKey) => {
    const known = registered.find((key) => key.fingerprint === fingerprint);
    return { id: known?.id ?? null, name: known?.name ?? '', public_key: text };
  });
  return [...byId, ...given];
}

function identityOf({ public_key }: PodSshKey): string {
  const parsed = parsePublicKey(public_key);
  return 'key' in parsed ? parsed.key.fingerprint : public_key;
}
