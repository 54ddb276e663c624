/** Resolves a path in a pod to a path on the host that is inside one of the pod's data roots and contains no link. */
import type { Stats } from 'node:fs';
import { lstat, opendir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { TargetState } from '#shared/api/agent/operations.ts';
import type { DataRoot } from '../containers/volumes/pod-volumes.ts';
import { OperationFailure } from './operation.state.ts';
import type { RestoreRow } from './operation.store.ts';
import type { RunPorts } from './operation-context.ts';

export type DataPlace = {
  root: DataRoot;
  /** Path on the host. */
  live: string;
  /** Parent folder of `live`, and the name in it. */
  parent: string;
  name: string;
  /** Null if the path does not exist. */
  kind: 'folder' | 'file' | null;
};

/**
 * Rejects with PathRefused if the path is outside every data root, contains a link, or is neither folder nor file, and
 * with PathMissing if it does not exist but must. Links are checked step by step, and a running pod may add one
 * afterwards: therefore readers use a jail, and writers run only while the pod is paused.
 */
export async function locate(
  roots: readonly DataRoot[],
  podPath: string,
  presence: 'must_be_there' | 'may_be_missing',
): Promise<DataPlace> {
  const root = rootOf(roots, podPath);
  const steps = podPath
    .slice(root.mountPath.length)
    .split('/')
    .filter((step) => step !== '');
  let live = root.hostPath;
  let found = await look(live);
  for (const step of steps) {
    if (found !== null && !found.isDirectory()) {
      throw refused(podPath, 'goes through a link or a file');
    }
    live = join(live, step);
    found = found === null ? null : await look(live);
  }
  if (found === null && presence === 'must_be_there') {
    throw new OperationFailure('PathMissing', `${podPath} does not exist`);
  }
  const kind = found === null ? null : kindOf(found, podPath);
  return { root, live, parent: dirname(live), name: basename(live), kind };
}

function rootOf(roots: readonly DataRoot[], podPath: string): DataRoot {
  const [root] = roots
    .filter(({ mountPath }) => podPath === mountPath || podPath.startsWith(`${mountPath}/`))
    .toSorted((a, b) => b.mountPath.length - a.mountPath.length);
  if (root !== undefined) return root;
  const places = roots.map(({ mountPath }) => mountPath).join(', ');
  throw refused(
    podPath,
    places === '' ? 'cannot be used: the pod has no volumes' : `is not inside ${places}`,
  );
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
  throw refused(podPath, 'is neither a folder nor a file');
}

function refused(podPath: string, why: string): OperationFailure {
  return new OperationFailure('PathRefused', `${podPath} ${why}`);
}

type Ports = Pick<RunPorts, 'dataRootsOf'>;

/**
 * Returns the current target of a restore. Rejects with TargetNotEmpty in mode `new_only` if the target exists and is
 * not empty.
 */
export async function locateTarget(
  podId: string,
  { request }: RestoreRow,
  ports: Ports,
): Promise<DataPlace> {
  const place = await locate(await ports.dataRootsOf(podId), request.target_path, 'may_be_missing');
  if (request.mode !== 'new_only' || (await stateOf(place)) !== 'occupied') return place;
  throw new OperationFailure('TargetNotEmpty', `${request.target_path} exists and is not empty`);
}

/** Returns whether a path of the pod is absent, empty or occupied. Rejects as `locate` does. */
export async function targetStateOf(
  podId: string,
  path: string,
  ports: Ports,
): Promise<TargetState> {
  return stateOf(await locate(await ports.dataRootsOf(podId), path, 'may_be_missing'));
}

async function stateOf({ kind, live }: DataPlace): Promise<TargetState> {
  if (kind === null) return 'absent';
  return kind === 'folder' && (await isEmptyFolder(live)) ? 'empty' : 'occupied';
}

async function isEmptyFolder(path: string): Promise<boolean> {
  const folder = await opendir(path);
  const first = await folder.read();
  await folder.close();
  return first === null;
}
