/**
 * Volumes that outlive pods, on the agent's wire. What lies on a host is a copy of one, under an id of its own: made
 * before the pod that gets it, filled by a restore, and kept after the pod until it is removed by its id.
 */
import { z } from 'zod';
import { Age, Amount, Bytes } from './bounds.ts';

/** Where a pod finds it. */
export const VOLUME_MOUNT_PATH = '/mnt';

export const VolumeCopyId = z.uuid();

/** A repeat changes nothing but the limit. */
export const VolumePut = z.strictObject({
  /** Whose copy it is, for people who look at the host. */
  volume_id: z.uuid(),
  /** What its data may come to: measured, as no kernel limits it. */
  size_bytes: Bytes.min(1),
});
export type VolumePut = z.output<typeof VolumePut>;

export const VolumeView = z.object({
  id: VolumeCopyId,
  volume_id: z.uuid(),
  size_bytes: Bytes,
  /** `removing`: it is gone as soon as nothing works on it any more; `removed`: nothing is left, said once. */
  state: z.enum(['present', 'removing', 'removed']),
  /** What lies in it, as last measured; null: not yet, or it cannot be. */
  bytes: Bytes.nullable(),
  /** Files, folders and links. */
  files: Amount.nullable(),
  measured_age_ms: Age.nullable(),
});
export type VolumeView = z.output<typeof VolumeView>;

export const VolumeList = z.object({ volumes: z.array(VolumeView).max(10_000) });

/** Where the data volumes of a pod may lie in its container (contract 8, `volumes` of templates). Pure. */

/** More would make removals and measurements of one pod slow; templates ask for one or two. */
export const MAX_VOLUMES = 8;
export const MAX_VOLUME_PATH_CHARS = 512;

/** The kernel's folders, and the one in which every pod finds what the agent mounts. */
const SYSTEM_FOLDERS = ['proc', 'sys', 'dev', '.podwright'];
/** Of a path in a message. */
const SHOWN_CHARS = 100;

/** What speaks against these mount paths, naming the first that no pod can have; null when nothing does. */
export function volumesProblem(paths: readonly string[]): string | null {
  for (const [index, path] of paths.entries()) {
    const problem = problemOf(path) ?? clashOf(path, paths.slice(0, index));
    if (problem !== null) return `${shown(path)} ${problem}`;
  }
  return null;
}

/** The one way to write a path that may be named: without a slash at its end. */
export function normalizeMountPath(path: string): string {
  return `/${foldersOf(path).join('/')}`;
}

function problemOf(path: string): string | null {
  if (!path.startsWith('/')) return 'is not an absolute path';
  if (/[\p{Cc}:]/u.test(path)) return 'holds a control character or a colon';
  if (!path.isWellFormed()) return 'holds half a character (a lone surrogate)';
  const folders = foldersOf(path);
  const [first] = folders;
  if (first === undefined) return 'is the whole file system';
  if (/\/\//.test(path) || folders.some((name) => name === '.' || name === '..')) {
    return 'has empty, . or .. steps';
  }
  return SYSTEM_FOLDERS.includes(first) ? 'lies in a folder of the system' : null;
}

function clashOf(path: string, others: readonly string[]): string | null {
  const other = others.find((each) => isWithin(path, each) || isWithin(each, path));
  if (other === undefined) return null;
  const same = foldersOf(path).length === foldersOf(other).length;
  return same ? 'is named twice' : `and ${shown(other)} lie in each other`;
}

function isWithin(path: string, folder: string): boolean {
  const steps = foldersOf(path);
  return foldersOf(folder).every((name, index) => steps[index] === name);
}

/** Without the empty step that a slash at the end makes. */
function foldersOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '');
}

function shown(path: string): string {
  return JSON.stringify(path.slice(0, SHOWN_CHARS));
}
