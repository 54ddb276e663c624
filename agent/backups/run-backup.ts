/** Runs one backup, from its path to a verified snapshot. */
import type { FileList } from '#shared/api/agent/operations.ts';
import { unlessAborted } from '#shared/runtime/abort.ts';
import { createBackupGuard } from './backup-guard.ts';
import { createChangedFiles, findCandidates } from './changed-files.ts';
import { type DamageCheck, startDamageCheck } from './damage-check.ts';
import { type DataPlace, locate } from './data-path.ts';
import { OperationFailure } from './operation.state.ts';
import type { BackupRow } from './operation.store.ts';
import type { OperationContext, RunPorts } from './operation-context.ts';
import type { ResticSession } from './restic.ts';
import type { BackupStatus } from './restic-output.ts';

/** Resolves when the snapshot is verified; rejects with OperationFailure or the signal's reason. */
export async function runBackup(work: OperationContext<BackupRow>, ports: RunPorts): Promise<void> {
  const { restic } = ports;
  const { pod_id: podId, request } = work.row();
  work.move('preparing', {});
  const place = await locate(podId, request.path, 'must_be_there', ports);
  const session = work.session(place.shown);
  await restic.checkVersion(session.signal);
  if (request.create_repository) await restic.make(session);
  // A new repository has nothing to check.
  const check = request.create_repository ? null : startDamageCheck(session, ports);
  try {
    await backUp(work, ports, { place, session, check });
  } finally {
    await check?.stop();
  }
}

type Parts = { place: DataPlace; session: ResticSession; check: DamageCheck | null };

async function backUp(
  work: OperationContext<BackupRow>,
  ports: RunPorts,
  { place, session, check }: Parts,
): Promise<void> {
  const { restic, executorId } = ports;
  const { pod_id: podId, request } = work.row();
  work.move('uploading', {});
  work.appendLog(`Backing up ${request.path}; it is read while the pod runs (crash-consistent)`);
  logVolumesIn(place, work);
  const beganMs = ports.clock.now();
  const watch = watchProgress(work, ports);
  const guard = createBackupGuard(place, ports);
  // Runs concurrently with the backup, because stale locks do not block a backup. Ignores errors: the backup itself
  // reports faults of the repository.
  const unlocked = mayHaveLeftLock(work, ports)
    ? restic.unlock({ ...session, appendLog: () => undefined }).catch(() => undefined)
    : Promise.resolve();
  const { partial, summary } = await restic
    .backup(
      { ...session, signal: AbortSignal.any([session.signal, guard.signal]) },
      {
        jail: place.jail,
        name: place.name,
        host: executorId,
        tag: podId,
      },
      {
        onStart: guard.watch,
        onStatus(status) {
          guard.note(status);
          watch.onStatus(status);
        },
      },
    )
    .finally(() => unlocked);
  watch.end();
  await checkContainer(place, podId, ports);
  if (summary === null) throw new OperationFailure('EngineFailed', 'restic reported no snapshot');

  work.move('verifying', {});
  const written = { place, session, beganMs, id: summary.snapshot_id };
  const listing = listChanges(written, work, ports);
  const reading = restic.readTrees(session, summary.snapshot_id);
  // Both have ended before the operation ends, also when one fails.
  await Promise.allSettled([listing, reading]);
  await reading;
  const { snapshot_id, changed } = await listing;
  const { total_files_processed: files, total_bytes_processed: bytes } = summary;
  const quality = partial ? 'partial' : 'full';
  work.appendLog(
    `Snapshot ${snapshot_id}: ${files} files, ${bytes} bytes, ${summary.data_added} new (${quality})`,
  );
  work.advance({
    total_files: files,
    processed_files: files,
    total_bytes: bytes,
    processed_bytes: bytes,
  });
  if (changed !== null && changed.count > 0) {
    work.appendLog(`${changed.count} files changed while they were read`);
  }
  const damage = (await check?.found()) ?? null;
  if (damage !== null) work.appendLog(damage);
  work.note({ snapshot_id, quality, changed, journal: damage === null ? null : { damage } });
}

function logVolumesIn({ source }: DataPlace, work: OperationContext<BackupRow>): void {
  if ('volume' in source || source.volumesIn.length === 0) return;
  work.appendLog(`Volumes in this folder are not included: ${source.volumesIn.join(', ')}`);
}

/** Rejects if an edit of the pod replaced the container during the backup: files vanished with the old container. */
async function checkContainer(
  { source }: DataPlace,
  podId: string,
  { containerFilesOf }: RunPorts,
): Promise<void> {
  if ('volume' in source) return;
  const container = await containerFilesOf(podId);
  const { containerId } = source.container;
  if (typeof container !== 'string' && container.containerId === containerId) return;
  const message = 'An edit of the pod replaced the container during the backup. Back up again';
  throw new OperationFailure('ContainerReplaced', message);
}

/** Margin for the kernel's clock, which advances in steps. */
const CLOCK_STEP_MS = 1_000;

type Written = { place: DataPlace; session: ResticSession; beganMs: number; id: string };

/**
 * Returns the snapshot's full id, and the files that changed since `beganMs` or null if they cannot be determined.
 */
async function listChanges(
  { place: { jail, name }, session, beganMs, id }: Written,
  work: OperationContext<BackupRow>,
  { restic, runCommand }: RunPorts,
): Promise<{ snapshot_id: string; changed: FileList | null }> {
  const { path: podPath } = work.row().request;
  const candidates = await unlessAborted(work.signal, () =>
    findCandidates({ jail, name }, beganMs - CLOCK_STEP_MS, runCommand),
  );
  const podPathOf = (path: string) => podPath + path.slice(name.length + 1);
  const { paths, add, found } = createChangedFiles(candidates ?? new Map(), podPathOf);
  const snapshot_id = await restic.list(session, id, add, paths);
  return { snapshot_id, changed: candidates === null ? null : found() };
}

/** Returns true if a killed restic may have left a lock. Other backups skip the check, which takes half a second. */
function mayHaveLeftLock(work: OperationContext<BackupRow>, { store }: RunPorts): boolean {
  const { pod_id: podId, attempts, request } = work.row();
  if (request.create_repository) return false;
  const last = store.lastOf(podId);
  return attempts > 1 || (last !== null && last.stage !== 'done');
}

const MS_PER_SECOND = 1_000;

/**
 * Updates rate and remaining time between restic's reports: restic reports only whole blobs, each of which may take
 * long.
 */
function watchProgress(work: OperationContext<BackupRow>, { clock }: RunPorts) {
  const startedMs = clock.monotonicMs();
  let last: BackupStatus | null = null;
  work.onBeat(() => {
    if (last === null) return;
    const seconds = Math.max((clock.monotonicMs() - startedMs) / MS_PER_SECOND, 0.001);
    work.advance(progressOf(last, last.bytes_done / seconds));
  });
  return {
    onStatus(status: BackupStatus): void {
      last = status;
    },
    end: () => work.onBeat(() => undefined),
  };
}

/** Converts restic's status to progress. `rate` in bytes per second. */
function progressOf(status: BackupStatus, rate: number) {
  const leftBytes = status.total_bytes - status.bytes_done;
  return {
    total_files: status.total_files,
    processed_files: status.files_done,
    total_bytes: status.total_bytes,
    processed_bytes: status.bytes_done,
    percent: status.percent_done * 100,
    bytes_per_second: Math.round(rate),
    remaining_seconds: rate > 0 ? Math.max(0, Math.ceil(leftBytes / rate)) : null,
  };
}
