/** Checks and resolves the parts of a rental request that do not depend on the node. Pure. */
import { parseDockerfile } from '#shared/api/agent/dockerfile.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { parsePublicKey } from '../../accounts/ssh-keys/public-key.ts';
import type { RestoreRequest } from '../../backups/backup.schemas.ts';
import type { SshKey, Template } from '../../platform/database/tables.ts';
import type { PodKey } from '../pods/pod-key.ts';
import { CreateTemplate } from '../templates/template.schemas.ts';
import { templateContent } from '../templates/template.service.ts';
import type { RentExecutorRequest } from './rental.schemas.ts';

/**
 * Throws 400 for a member that the interface has but this version does not implement, so that it is not silently
 * ignored.
 */
export function refuseUnavailable(body: RentExecutorRequest): void {
  if (body.enable_volume_encryption !== true) return;
  throw new ApiError('bad_request', 'Nodes of this marketplace do not encrypt volumes', {
    hint: 'Rent without enable_volume_encryption, and encrypt files in the pod before you write them.',
  });
}

/** Throws 400 for a request with both a Dockerfile and a template. */
export function requireOneImage(
  body: Pick<RentExecutorRequest, 'template_id' | 'dockerfile_content'>,
): void {
  const { template_id: templateId, dockerfile_content: text } = body;
  if ((templateId ?? null) === null || (text ?? null) === null) return;
  throw new ApiError('bad_request', 'Both template_id and dockerfile_content are given', {
    hint: 'Send either template_id or dockerfile_content.',
  });
}

/**
 * Returns the restore that is requested with the rental, or null. Throws 400 if only one of the two members is present.
 */
export function restoreRequestOf(
  body: Pick<RentExecutorRequest, 'backup_log_id' | 'restore_path'>,
): RestoreRequest | null {
  const backup = body.backup_log_id ?? null;
  const path = body.restore_path ?? null;
  if (backup === null && path === null) return null;
  if (backup !== null && path !== null) {
    return { backup_id: backup, restore_path: path, mode: undefined, salvage: undefined };
  }
  throw new ApiError('bad_request', 'backup_log_id and restore_path belong together', {
    hint: 'Send both members or neither.',
  });
}

/**
 * Returns the keys of the request, with the account's names for registered keys. Without keys in the request, returns
 * all keys of the account.
 */
export function chosenKeys(
  pasted: string | readonly string[] | null | undefined,
  registered: readonly SshKey[],
): PodKey[] {
  const requested = [pasted ?? []].flat().filter((key) => key.trim() !== '');
  const keys =
    requested.length === 0
      ? registered.map(({ id, name, public_key }) => ({ id, name, public_key }))
      : distinct(requested.map((key) => namedKey(key, registered)));
  if (keys.length > 0) return keys;
  throw new ApiError('bad_request', 'There is no SSH key to put on the pod', {
    hint: 'Register a key with POST /ssh-keys or send user_public_key.',
  });
}

function namedKey(pasted: string, registered: readonly SshKey[]): PodKey {
  const parsed = parsePublicKey(pasted);
  if ('problem' in parsed) {
    throw new ApiError('bad_request', `user_public_key: ${parsed.problem}`, {
      hint: 'Send the line of the .pub file unchanged.',
    });
  }
  const { text, fingerprint } = parsed.key;
  const known = registered.find((key) => key.fingerprint === fingerprint);
  return { id: known?.id ?? null, name: known?.name ?? '', public_key: text };
}

function distinct(keys: readonly PodKey[]): PodKey[] {
  return [...new Map(keys.map((key) => [key.public_key, key])).values()];
}

/** `template_id` of pods without a stored template. */
export const NO_TEMPLATE_ID = '';

/** Returns a template with default values for a pod whose image is built from `text`. Throws `bad_request`. */
export function dockerfileTemplate(
  text: string,
  { id, accountId, nowMs }: { id: string; accountId: string; nowMs: number },
): Template {
  const parsed = parseDockerfile(text);
  if ('problem' in parsed) {
    throw new ApiError('bad_request', `dockerfile_content: ${parsed.problem}`, {
      hint: 'Correct the Dockerfile according to the message.',
    });
  }
  const body = CreateTemplate.parse({
    name: 'Dockerfile',
    description: 'Built on the node.',
    docker_image: 'dockerfile',
    category: 'DOCKER',
  });
  return {
    ...templateContent(body),
    id,
    account_id: accountId,
    used_at: null,
    deleted_at: null,
    created_at: nowMs,
    updated_at: nowMs,
  };
}
