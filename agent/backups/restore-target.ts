/** Where a restored tree goes in a pod, and what is there (contract 9.1, `mode`). */
import { opendir } from 'node:fs/promises';
import type { TargetState } from '#shared/api/agent/operations.ts';
import { type DataPlace, locate } from './data-path.ts';
import type { RestoreRow } from './operation.store.ts';
import type { RunPorts } from './operation.work.ts';
import { OperationFailure } from './operation-failure.ts';

type Ports = Pick<RunPorts, 'dataRootsOf'>;

/** Where the tree is to go, as it is at this moment. */
export async function locateTarget(
  podId: string,
  { request }: RestoreRow,
  ports: Ports,
): Promise<DataPlace> {
  const place = await locate(await ports.dataRootsOf(podId), request.target_path, 'may_be_missing');
  if (request.mode !== 'new_only' || (await stateOf(place)) !== 'occupied') return place;
  throw new OperationFailure('TargetNotEmpty', `${request.target_path} is there and not empty`);
}

/** What is at a path of the pod. Rejects as `locate` does. */
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
