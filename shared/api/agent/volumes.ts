/**
 * Volumes in the agent's interface. A host has a copy of a volume, which has a separate id. The copy is created before
 * the pod that mounts it, and filled by a restore. It outlives the pod until it is deleted by its id. Also the mount
 * paths of a pod's data volumes.
 */
import { z } from 'zod';
import { Age, Amount, Bytes } from './bounds.ts';

/** Mount path in the pod. */
export const VOLUME_MOUNT_PATH = '/mnt';

export const VolumeCopyId = z.uuid();

/** Idempotent: a repeated request can change only the limit. */
export const VolumePut = z.strictObject({
  /** Id of the volume, shown to operators of the host. */
  volume_id: z.uuid(),
  /** Limit for its data, bytes. Enforced by periodic measurement, not by the kernel. */
  size_bytes: Bytes.min(1),
});
export type VolumePut = z.output<typeof VolumePut>;

export const VolumeView = z.object({
  id: VolumeCopyId,
  volume_id: z.uuid(),
  size_bytes: Bytes,
  /** `removing`: to be deleted when no operation uses it any more. `removed`: reported once, after the deletion. */
  state: z.enum(['present', 'removing', 'removed']),
  /** Size of its data when last measured; null if it was not or could not be measured. */
  bytes: Bytes.nullable(),
  /** Number of files, folders and links. */
  files: Amount.nullable(),
  measured_age_ms: Age.nullable(),
});
export type VolumeView = z.output<typeof VolumeView>;

export const VolumeList = z.object({ volumes: z.array(VolumeView).max(10_000) });

/** Maximum number of data volumes: more would slow down removal and measurement of a pod; templates use one or two. */
export const MAX_VOLUMES = 8;
export const MAX_VOLUME_PATH_CHARS = 512;

/** Folders of the kernel, and the folder of the agent's mounts. */
const SYSTEM_FOLDERS = ['proc', 'sys', 'dev', '.podwright'];
const SHOWN_CHARS = 100;

/** Returns the first problem of these mount paths; null if there is none. */
export function volumesProblem(paths: readonly string[]): string | null {
  for (const [index, path] of paths.entries()) {
    const problem = problemOf(path) ?? clashOf(path, paths.slice(0, index));
    if (problem !== null) return `${shown(path)} ${problem}`;
  }
  return null;
}

/** Removes a trailing slash. */
export function normalizeMountPath(path: string): string {
  return `/${foldersOf(path).join('/')}`;
}

function problemOf(path: string): string | null {
  if (!path.startsWith('/')) return 'is not an absolute path';
  if (/[\p{Cc}:]/u.test(path)) return 'contains a control character or a colon';
  if (!path.isWellFormed()) return 'contains a lone surrogate';
  const folders = foldersOf(path);
  const [first] = folders;
  if (first === undefined) return 'is the root of the file system';
  if (/\/\//.test(path) || folders.some((name) => name === '.' || name === '..')) {
    return 'has empty, . or .. segments';
  }
  return SYSTEM_FOLDERS.includes(first) ? 'is in a system folder' : null;
}

function clashOf(path: string, others: readonly string[]): string | null {
  const other = others.find((each) => isWithin(path, each) || isWithin(each, path));
  if (other === undefined) return null;
  const same = foldersOf(path).length === foldersOf(other).length;
  return same ? 'is listed twice' : `overlaps with ${shown(other)}`;
}

function isWithin(path: string, folder: string): boolean {
  const steps = foldersOf(path);
  return foldersOf(folder).every((name, index) => steps[index] === name);
}

function foldersOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '');
}

function shown(path: string): string {
  return JSON.stringify(path.slice(0, SHOWN_CHARS));
}
