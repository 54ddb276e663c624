/** Adds SSH keys to an existing pod. */
import { ApiError } from '#shared/runtime/errors.ts';
import type { PublicKey } from '../../accounts/ssh-keys/public-key.ts';
import { listForAccount, requireOwnSshKey } from '../../accounts/ssh-keys/ssh-key.service.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import type { AddSshKeysRequest } from './pod-change.schemas.ts';
import { keyIdentity, type PodKey, podKeysOf } from './pod-key.ts';
import { changeUnlessRemoving } from './pod-removal.ts';

/** Limit of the agent. */
const MAX_KEYS_PER_POD = 50;

export type KeysAdded = { pod: Pod; added: number; alreadyPresent: number };

/** Changes only the row; the sync sends the keys to the agent. */
export async function addSshKeysTo(
  tx: Db,
  pod: Pod,
  request: AddSshKeysRequest,
  nowMs: number,
): Promise<KeysAdded> {
  const requested = await resolveKeys(tx, pod.account_id, request);
  const { keys, added } = mergeKeys(podKeysOf(pod), requested);
  if (keys.length > MAX_KEYS_PER_POD) {
    throw new ApiError('bad_request', `A pod has at most ${MAX_KEYS_PER_POD} SSH keys`);
  }
  const change = { ssh_keys_json: JSON.stringify(keys), updated_at: nowMs };
  await changeUnlessRemoving(tx, pod, change);
  return { pod: { ...pod, ...change }, added, alreadyPresent: requested.length - added };
}

/** Appends the new keys. Keys that differ only in their comment are equal. Pure. */
export function mergeKeys(
  present: readonly PodKey[],
  requested: readonly PodKey[],
): { keys: PodKey[]; added: number } {
  const keys = [...present];
  const known = new Set(present.map(keyIdentity));
  for (const key of requested) {
    if (known.has(keyIdentity(key))) continue;
    known.add(keyIdentity(key));
    keys.push(key);
  }
  return { keys, added: keys.length - present.length };
}

async function resolveKeys(
  tx: Db,
  accountId: string,
  request: AddSshKeysRequest,
): Promise<PodKey[]> {
  const registered = await listForAccount(tx, accountId);
  const byId: PodKey[] = [];
  for (const id of request.ssh_key_ids ?? []) {
    const { name, public_key } = await requireOwnSshKey(tx, accountId, id);
    byId.push({ id, name, public_key });
  }
  const pasted = (request.public_keys ?? []).map(({ text, fingerprint }: PublicKey) => {
    const known = registered.find((key) => key.fingerprint === fingerprint);
    return { id: known?.id ?? null, name: known?.name ?? '', public_key: text };
  });
  return [...byId, ...pasted];
}
