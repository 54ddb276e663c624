/** Validates the folders of a pod that are backed up and restored. Pure. */
import { z } from 'zod';
import { PodPath } from '#shared/api/agent/operations.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Pod } from '../platform/database/tables.ts';

/** Temporary folders and mounts, which are never backed up. */
const REFUSED = ['/tmp', '/var/tmp', '/mnt'];
const Volumes = z.object({ volumes: z.array(z.string()).optional() });

/** Returns the data volumes of a pod: from its present spec, or else from the template of its rental. */
export function volumesOf({ spec_json, template_json }: Pick<Pod, 'spec_json' | 'template_json'>) {
  const named =
    Volumes.parse(JSON.parse(spec_json)).volumes ??
    Volumes.parse(JSON.parse(template_json)).volumes;
  return (named ?? []).map(withoutTrailingSlash);
}

/** Returns the path without a trailing slash. Throws 400 `bad_request` if it is not inside one of `volumes`. */
export function checkedPath(requested: string, volumes: readonly string[]): string {
  const path = withoutTrailingSlash(requested);
  const problem = problemOf(path, volumes);
  if (problem === null) return path;
  throw new ApiError('bad_request', `The path ${problem}`, { hint: hintFor(volumes) });
}

function problemOf(path: string, volumes: readonly string[]): string | null {
  if (volumes.length === 0) return 'is not possible: the pod has no volumes';
  if (!path.startsWith('/')) return 'is not absolute';
  if (path.split('/').includes('..')) return 'contains ..';
  if (/\p{Cc}/u.test(path)) return 'contains a control character';
  if (!PodPath.safeParse(path).success) return 'contains an empty or . segment';
  const refused = REFUSED.find((folder) => isWithin(path, folder));
  if (refused !== undefined) return `is in ${refused}, which is never backed up`;
  return volumes.some((folder) => isWithin(path, folder))
    ? null
    : 'is in none of the pod’s volumes';
}

function hintFor(volumes: readonly string[]): string {
  return volumes.length === 0
    ? 'Edit the pod so that its template names volumes.'
    : `Name a folder in ${volumes.join(' or ')}.`;
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

function withoutTrailingSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}
