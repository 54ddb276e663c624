/** Which folders of a pod can be backed up and restored (contract 9.1). Pure. */
import { z } from 'zod';
import { PodPath } from '#shared/api/agent/operations.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Pod } from '../platform/database/tables.ts';

/** Never, whatever a pod keeps there: what is temporary, and what is mounted from elsewhere. */
const REFUSED = ['/tmp', '/var/tmp', '/mnt'];
const Volumes = z.object({ volumes: z.array(z.string()).optional() });

/** Where a pod has data volumes: by the spec that runs, or by the template it was rented with. */
export function volumesOf({ spec_json, template_json }: Pick<Pod, 'spec_json' | 'template_json'>) {
  const named =
    Volumes.parse(JSON.parse(spec_json)).volumes ??
    Volumes.parse(JSON.parse(template_json)).volumes;
  return (named ?? []).map(withoutEnd);
}

/** The path as nodes take it. Throws 400 `bad_request` for one that does not lie in one of `volumes`. */
export function checkedPath(given: string, volumes: readonly string[]): string {
  const path = withoutEnd(given);
  const problem = problemOf(path, volumes);
  if (problem === null) return path;
  throw new ApiError('bad_request', `The path ${problem}`, { hint: hintFor(volumes) });
}

function problemOf(path: string, volumes: readonly string[]): string | null {
  if (volumes.length === 0) return 'can be none: the pod has no volumes';
  if (!path.startsWith('/')) return 'is not absolute';
  if (path.split('/').includes('..')) return 'has a step back (..)';
  if (/\p{Cc}/u.test(path)) return 'holds a control character';
  if (!PodPath.safeParse(path).success) return 'has empty or . steps';
  const refused = REFUSED.find((folder) => isWithin(path, folder));
  if (refused !== undefined) return `lies in ${refused}, which is never backed up`;
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

function withoutEnd(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}
