/**
 * First half of a restore: fetches the snapshot as a verified tree beside the pod's volume or layer (the staged tree),
 * while the pod keeps running.
 */
import { chmod, lstat, mkdir, opendir, readFile, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { FileList } from '#shared/api/agent/operations.ts';
import { unlessAborted } from '#shared/runtime/abort.ts';
import { makeStagingLayers, sealStaged } from './container-tree.ts';
import { type DataPlace, locateTarget } from './data-path.ts';
import { syncFolder } from './durable-files.ts';
import type { Jail } from './jail.ts';
import { dropLost } from './lost-files.ts';
import { OperationFailure } from './operation.state.ts';
import type { OperationRow, RestoreJournal, RestoreRow } from './operation.store.ts';
import type { OperationContext, RunPorts } from './operation-context.ts';
import type { ResticSession } from './restic.ts';
import type { SnapshotStats } from './restic-output.ts';
import { digHoles, measureTree, type TreeMeasure } from './staged-tree.ts';

const MARGIN_BYTES = 64 * 1024 * 1024;
const MARGIN_SHARE = 0.05;
/** Disk space per entry in addition to its content, bytes. */
const ENTRY_BYTES = 4_096;
const SYNC_MS = 30 * 60_000;
const MS_PER_SECOND = 1_000;
/** Lost paths that go into an operation's log; its report has more. */
const MAX_LOGGED_PATHS = 20;

/**
 * Returns the folder for the staged tree (`new`), the tree that it replaces (`old`), and a restored tree that was
 * rolled back (`refused`).
 */
export function stagingFolderOf(place: DataPlace, operationId: string): string {
  return join(place.stagingParent, `.podwright-restore-${operationId}`);
}

/** Resolves in the stage `verifying` with the staged tree on disk. First removes what an earlier attempt left. */
export async function fetchSnapshot(
  work: OperationContext<RestoreRow>,
  ports: RunPorts,
): Promise<RestoreJournal> {
  const { restic } = ports;
  const { id, pod_id: podId, request } = work.row();
  const place = await locateTarget(podId, work.row(), ports);
  const folder = stagingFolderOf(place, id);
  const container_id = 'container' in place.source ? place.source.container.containerId : null;
  const begun = {
    folder,
    live: place.live,
    staged: folder,
    container_id,
    had_old: false,
    was_running: false,
    is_live: false,
    lost: null,
  };
  work.move('fetching', { journal: { ...begun, step: 'fetching' } });
  await checkSameFileSystem(place);
  const session = work.session([[folder, '(staged)'], ...place.shown]);
  await restic.checkVersion(session.signal);
  const stats = await statsOf(work, session, ports);
  if (stats !== null) await checkSpace(place.stagingParent, stats);

  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { mode: 0o700 });
  await chmod(folder, 0o700);
  const { jail, target, tree } = await makeStaging(place, folder, ports);
  const { total_file_count: entries, total_size: bytes } = stats ?? UNKNOWN;
  const size = stats === null ? 'of unknown size' : `${entries} entries, ${bytes} bytes`;
  work.appendLog(`Fetching ${request.source_path} from the backup: ${size}`);
  const watch = watchProgress(work, ports, stats ?? UNKNOWN);
  const reports = new Set<string>();
  await restic.restore(session, {
    jail,
    id: request.snapshot_id,
    target,
    onStart: watch.begin,
    ...(request.salvage === true ? { onLost: (text) => void reports.add(text) } : {}),
  });
  watch.end();

  work.move('verifying', {});
  const restored = await onlyEntryOf(tree);
  const where = { tree: restored, targetPath: request.target_path };
  const lost = request.salvage === true ? await dropLost(tree, reports, where) : null;
  logLost(work, lost);
  const isWhole = lost === null || lost.count === 0;
  const { sparse } = await checkTree(work, tree, isWhole ? stats : null);
  await unlessAborted(work.signal, () => digHoles(sparse, { ...ports, folder }));
  const mustHide = 'container' in place.source && (await lstat(restored)).isDirectory();
  const staged = mustHide ? await sealStaged(folder, restored, ports) : restored;
  await unlessAborted(work.signal, () => putOnDisk(folder, ports));
  await syncFolder(dirname(folder));
  const was_running = (await ports.pause.runStateOf(podId)) === 'running';
  return { ...begun, staged, was_running, lost, step: 'staged' };
}

/** Size of a damaged snapshot, which cannot be measured. */
const UNKNOWN: SnapshotStats = { total_size: 0, total_file_count: 0 };

/** Returns null for a damaged snapshot whose readable part is restored. */
async function statsOf(
  work: OperationContext<RestoreRow>,
  session: ResticSession,
  { restic }: RunPorts,
): Promise<SnapshotStats | null> {
  const { snapshot_id: snapshot, salvage } = work.row().request;
  return restic.statsOf(session, snapshot).catch((error: unknown) => {
    const isDamaged = error instanceof OperationFailure && error.code === 'RepositoryCorrupt';
    if (salvage === true && isDamaged) return null;
    throw error;
  });
}

function logLost(work: OperationContext<RestoreRow>, lost: FileList | null): void {
  if (lost === null) return;
  work.appendLog(`${lost.count} files and folders of the backup cannot be read and are missing`);
  for (const path of lost.paths.slice(0, MAX_LOGGED_PATHS)) work.appendLog(`Missing: ${path}`);
}

/**
 * Creates the folders of a restore. `target` is the path that restic uses, `tree` the path of the same folder on the
 * host.
 */
async function makeStaging(
  { source }: DataPlace,
  folder: string,
  ports: RunPorts,
): Promise<{ jail: Jail; target: string; tree: string }> {
  if ('container' in source) return makeStagingLayers(folder, ports);
  const tree = join(folder, 'new');
  await mkdir(tree, { mode: 0o700 });
  return { jail: { folder, readOnly: false, cwd: folder }, target: tree, tree };
}

/** Syncs the whole file system: syncing a million files one by one would take longer. */
export async function putOnDisk(target: string, { runCommand }: RunPorts): Promise<void> {
  const bounds = { timeoutMs: SYNC_MS, maxOutputBytes: 4_096 };
  const { exitCode } = await runCommand('sync', ['--file-system', target], bounds);
  if (exitCode === 0) return;
  throw new OperationFailure('VerificationFailed', 'The restored tree could not be synced to disk');
}

/**
 * Rejects unless target and staging folder are on one file system. Trees are staged above the volume or layer, where the
 * pod cannot reach them, and exchanged by renames.
 */
async function checkSameFileSystem({
  source,
  live,
  kind,
  stagingParent,
}: DataPlace): Promise<void> {
  if ('container' in source) return;
  const { hostPath, mountPath } = source.volume;
  const inside = await stat(kind === null ? hostPath : live);
  const above = await stat(stagingParent);
  if (inside.dev === above.dev) return;
  throw new OperationFailure('PathRefused', `${mountPath} is on a separate file system`);
}

/** Rejects with NoSpace unless `folder` has space for the restored data and a margin. */
export async function checkSpace(folder: string, stats: SnapshotStats): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const needed =
    Math.ceil(stats.total_size * (1 + MARGIN_SHARE)) +
    stats.total_file_count * ENTRY_BYTES +
    MARGIN_BYTES;
  if (bavail * bsize >= needed) return;
  const free = `${bavail * bsize} bytes are free on the node`;
  throw new OperationFailure('NoSpace', `Restoring needs ${needed} bytes, ${free}`);
}

async function onlyEntryOf(target: string): Promise<string> {
  const folder = await opendir(target);
  const names: string[] = [];
  for await (const entry of folder) if (names.push(entry.name) > 1) break;
  const [name] = names;
  if (name !== undefined && names.length === 1) return join(target, name);
  throw new OperationFailure(
    'VerificationFailed',
    'The snapshot does not contain exactly one tree',
  );
}

async function checkTree(
  work: OperationContext<RestoreRow>,
  target: string,
  /** Null if the tree is known to be incomplete. */
  stats: SnapshotStats | null,
): Promise<TreeMeasure> {
  const found = await measureTree(target, work.signal);
  if (found.removedDevices > 0) work.appendLog(`${found.removedDevices} device files were removed`);
  const isComplete =
    stats === null ||
    (found.entries === stats.total_file_count && found.bytes === stats.total_size);
  if (isComplete) {
    work.advance({ processed_bytes: found.bytes, processed_files: found.entries });
    return found;
  }
  const there = `${found.entries} entries and ${found.bytes} bytes`;
  const wanted = `${stats.total_file_count} and ${stats.total_size}`;
  throw new OperationFailure(
    'VerificationFailed',
    `The restored tree has ${there}, expected ${wanted}`,
  );
}

/**
 * Reports the progress of a restore from the bytes that restic's process wrote, read from /proc: restic 0.14 reports
 * none.
 */
export function watchProgress<Row extends OperationRow>(
  work: OperationContext<Row>,
  { clock }: RunPorts,
  { total_size, total_file_count }: SnapshotStats,
) {
  const startedMs = clock.monotonicMs();
  let watched: number | null = null;
  work.advance({ total_bytes: total_size, total_files: total_file_count });

  async function look(pid: number): Promise<void> {
    const text = await readFile(`/proc/${pid}/io`, 'utf8').catch(() => '');
    const written = Number(/^wchar: (\d+)$/m.exec(text)?.[1] ?? 0);
    if (watched !== pid || written === 0) return;
    const processed_bytes = Math.min(written, total_size);
    const seconds = (clock.monotonicMs() - startedMs) / MS_PER_SECOND;
    const rate = Math.round(processed_bytes / Math.max(seconds, 0.001));
    work.advance({
      processed_bytes,
      percent: total_size === 0 ? 0 : (processed_bytes * 100) / total_size,
      bytes_per_second: rate,
      remaining_seconds: rate === 0 ? null : Math.ceil((total_size - processed_bytes) / rate),
    });
  }

  return {
    begin(pid: number): void {
      watched = pid;
      work.onBeat(() => void look(pid));
    },
    end(): void {
      watched = null;
      work.onBeat(() => undefined);
    },
  };
}
