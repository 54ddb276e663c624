/** Resolves a path in a pod to a path on the host, in a volume or in the container's layers, that contains no link. */
import type { Stats } from 'node:fs';
import { lstat, opendir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { neverSavedIn, type TargetState } from '#shared/api/agent/operations.ts';
import type { ContainerFiles } from '../containers/volumes/container-files.ts';
import type { DataRoot } from '../containers/volumes/pod-volumes.ts';
import { findIn, liveInLayer, readingJail, stagingParentOf } from './container-tree.ts';
import { type Jail, treeOf } from './jail.ts';
import { OperationFailure } from './operation.state.ts';
import type { RestoreRow } from './operation.store.ts';
import type { RunPorts } from './operation-context.ts';

const THROUGH = 'goes through a link or a file';
const NEITHER = 'is neither a folder nor a file';

/** A path of the pod on the host: in a volume, or in the file system of the container. */
export type DataPlace = {
  /** Path on the host. For a container: the path in the layer with its changes, which may lack the entry. */
  live: string;
  name: string;
  /** Null if the path does not exist. */
  kind: 'folder' | 'file' | null;
  /** Jail for reading the folder that contains the entry. */
  jail: Jail;
  /** Folder for staged trees (restored, not yet in place): on the same file system, and unreachable for the pod. */
  stagingParent: string;
  /** Replacements in displayed lines: from host path to pod path. */
  shown: readonly (readonly [string, string])[];
  /** The volume; or the container, with the mount paths of volumes below the entry, which its backups exclude. */
  source: { volume: DataRoot } | { container: ContainerFiles; volumesIn: readonly string[] };
};

type Ports = Pick<RunPorts, 'dataRootsOf' | 'containerFilesOf' | 'runCommand' | 'scratchFolder'>;

/**
 * Rejects with PathRefused if the path cannot be backed up, contains a link, or is neither folder nor file. Rejects
 * with PathMissing if the path must exist but does not. A running pod may add a link after this check:
 * therefore readers use a jail, and writers use a jail or wait until the pod is stopped.
 */
export async function locate(
  podId: string,
  podPath: string,
  presence: 'must_be_there' | 'may_be_missing',
  ports: Ports,
): Promise<DataPlace> {
  const roots = await ports.dataRootsOf(podId);
  const root = rootOf(roots, podPath);
  const place =
    root === null
      ? await locateOutside(podId, podPath, roots, ports)
      : await locateInVolume(root, podPath);
  if (place.kind === null && presence === 'must_be_there') {
    throw new OperationFailure('PathMissing', `${podPath} does not exist`);
  }
  return place;
}

/** Locates a path outside the pod's volumes: in the container, or in a volume that the image declares. */
async function locateOutside(
  podId: string,
  podPath: string,
  roots: readonly DataRoot[],
  ports: Ports,
): Promise<DataPlace> {
  const hidden = neverSavedIn(podPath);
  if (hidden !== null) throw refused(podPath, `is in ${hidden}, which is never backed up`);
  const container = await ports.containerFilesOf(podId);
  if (container === 'unreadable') throw refused(podPath, outsideOf(roots));
  if (container === 'absent') {
    throw new OperationFailure('PathMissing', `${podPath}: the pod has no container at present`);
  }
  const mounts = container.mounts.map(({ target, volumeFolder }) => ({
    mountPath: target,
    hostPath: volumeFolder,
  }));
  const mount = rootOf(mounts, podPath);
  if (mount === null) return locateInContainer(container, podPath, ports);
  const { mountPath, hostPath } = mount;
  if (hostPath !== null) return locateInVolume({ mountPath, hostPath }, podPath);
  throw refused(podPath, 'is provided by the node, which does not back it up');
}

async function locateInVolume(root: DataRoot, podPath: string): Promise<DataPlace> {
  const steps = podPath
    .slice(root.mountPath.length)
    .split('/')
    .filter((step) => step !== '');
  let live = root.hostPath;
  let found = await look(live);
  for (const step of steps) {
    if (found !== null && !found.isDirectory()) throw refused(podPath, THROUGH);
    live = join(live, step);
    found = found === null ? null : await look(live);
  }
  return {
    live,
    name: basename(live),
    kind: found === null ? null : kindOf(found, podPath),
    jail: { folder: root.hostPath, readOnly: true, cwd: dirname(live) },
    stagingParent: dirname(root.hostPath),
    shown: [
      [live, podPath],
      [root.hostPath, root.mountPath],
    ],
    source: { volume: root },
  };
}

async function locateInContainer(
  container: ContainerFiles,
  podPath: string,
  ports: Ports,
): Promise<DataPlace> {
  const finding = await findIn(container, podPath, ports);
  if (finding === 'through') throw refused(podPath, THROUGH);
  if (finding === 'link' || finding === 'other') throw refused(podPath, NEITHER);
  const jail = readingJail(container, dirname(podPath).slice(1) || '.', ports);
  return {
    live: liveInLayer(container, podPath),
    name: basename(podPath),
    kind: finding === 'absent' ? null : finding === 'file' ? 'file' : 'folder',
    jail,
    stagingParent: stagingParentOf(container),
    shown: [[treeOf(jail), '']],
    source: { container, volumesIn: volumesIn(podPath, container) },
  };
}

/** Returns the volume or mount that contains the path; the innermost, if they are nested. */
function rootOf<Root extends { mountPath: string }>(
  roots: readonly Root[],
  podPath: string,
): Root | null {
  const [root] = roots
    .filter(({ mountPath }) => podPath === mountPath || podPath.startsWith(`${mountPath}/`))
    .toSorted((a, b) => b.mountPath.length - a.mountPath.length);
  return root ?? null;
}

function volumesIn(podPath: string, { mounts }: ContainerFiles): string[] {
  return mounts
    .filter(({ target, volumeFolder }) => volumeFolder !== null && target.startsWith(`${podPath}/`))
    .map(({ target }) => target);
}

/** Returns the reason why a path is refused if only volumes can be used. */
function outsideOf(roots: readonly DataRoot[]): string {
  const places = roots.map(({ mountPath }) => mountPath).join(', ');
  return places === ''
    ? 'cannot be used: the pod has no volumes, and this node can back up and restore volumes only'
    : `is not in a volume of the pod (${places}), and this node can back up and restore volumes only`;
}

async function look(path: string): Promise<Stats | null> {
  return lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw new OperationFailure('EngineFailed', `A volume cannot be read (${error.code})`, error);
  });
}

function kindOf(stats: Stats, podPath: string): 'folder' | 'file' {
  if (stats.isDirectory()) return 'folder';
  if (stats.isFile()) return 'file';
  throw refused(podPath, NEITHER);
}

function refused(podPath: string, why: string): OperationFailure {
  return new OperationFailure('PathRefused', `${podPath} ${why}`);
}

/**
 * Returns the current target of a restore. Rejects with TargetNotEmpty in mode `new_only` if the target exists and is
 * not empty.
 */
export async function locateTarget(
  podId: string,
  { request }: RestoreRow,
  ports: Ports,
): Promise<DataPlace> {
  const place = await locate(podId, request.target_path, 'may_be_missing', ports);
  if (
    request.mode !== 'new_only' ||
    (await stateOf(place, request.target_path, ports)) !== 'occupied'
  )
    return place;
  throw new OperationFailure('TargetNotEmpty', `${request.target_path} exists and is not empty`);
}

/** Returns whether a path of the pod is absent, empty or occupied. Rejects as `locate` does. */
export async function targetStateOf(
  podId: string,
  path: string,
  ports: Ports,
): Promise<TargetState> {
  return stateOf(await locate(podId, path, 'may_be_missing', ports), path, ports);
}

async function stateOf(
  { kind, live, source }: DataPlace,
  podPath: string,
  ports: Ports,
): Promise<TargetState> {
  if (kind === null) return 'absent';
  if (kind === 'file') return 'occupied';
  const isEmpty =
    'volume' in source
      ? await isEmptyFolder(live)
      : (await findIn(source.container, podPath, ports)) === 'empty';
  return isEmpty ? 'empty' : 'occupied';
}

async function isEmptyFolder(path: string): Promise<boolean> {
  const folder = await opendir(path);
  const first = await folder.read();
  await folder.close();
  return first === null;
}
