/** Validates the folders of a pod that are backed up and restored. Pure. */
import { z } from 'zod';
import { neverSavedIn, PodPath } from '#shared/api/agent/operations.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Pod } from '../platform/database/tables.ts';

/** Home of root, which clients back up by default. */
const HOME = '/root';
const Volumes = z.object({ volumes: z.array(z.string()).optional() });

/** Returns the path of a backup request without a path: the pod's first volume, or `/root`. */
export function defaultPathOf(pod: Pick<Pod, 'spec_json' | 'template_json'>): string {
  return volumesOf(pod)[0] ?? HOME;
}

/** Returns the data volumes of a pod from its present spec; without a spec, from the template of its rental. */
function volumesOf({ spec_json, template_json }: Pick<Pod, 'spec_json' | 'template_json'>) {
  const named =
    Volumes.parse(JSON.parse(spec_json)).volumes ??
    Volumes.parse(JSON.parse(template_json)).volumes;
  return (named ?? []).map(withoutTrailingSlash);
}

/** Returns the path without a trailing slash. Throws 400 `bad_request` if the path cannot be backed up. */
export function checkedPath(requested: string): string {
  const path = withoutTrailingSlash(requested);
  const problem = problemOf(path);
  if (problem === null) return path;
  throw new ApiError('bad_request', `The path ${problem}`, {
    hint: 'Name a folder of the pod such as /root.',
  });
}

function problemOf(path: string): string | null {
  if (!path.startsWith('/')) return 'is not absolute';
  if (path === '/') return 'is the root folder, which cannot be replaced';
  if (path.split('/').includes('..')) return 'contains ..';
  if (/\p{Cc}/u.test(path)) return 'contains a control character';
  if (!PodPath.safeParse(path).success) return 'contains an empty or . segment';
  const refused = neverSavedIn(path);
  return refused === null ? null : `is in ${refused}, which is never backed up`;
}

function withoutTrailingSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}
