/** Runs one backup, from its path to a verified snapshot. */

import { locate } from './data-path.ts';
import { OperationFailure } from './operation.state.ts';
import type { BackupRow } from './operation.store.ts';
import type { OperationContext, RunPorts } from './operation-context.ts';
import type { BackupStatus } from './restic-output.ts';

/** Resolves when the snapshot is verified; rejects with OperationFailure or the signal's reason. */
export async function runBackup(work: OperationContext<BackupRow>, ports: RunPorts): Promise<void> {
  const { restic, executorId } = ports;
  const { pod_id: podId, request } = work.row();
  work.move('preparing', {});
  const roots = await ports.dataRootsOf(podId);
  const place = await locate(roots, request.path, 'must_be_there');
  const session = work.session([
    [place.live, request.path],
    [place.root.hostPath, place.root.mountPath],
  ]);
  await restic.checkVersion(session.signal);
  if (request.create_repository) await restic.make(session);

  work.move('uploading', {});
  work.appendLog(`Backing up ${request.path}; it is read while the pod runs (crash-consistent)`);
  const watch = watchProgress(work, ports);
  // Runs concurrently with the backup, which stale locks do not block; the backup itself reports faults of the
  // repository.
  const unlocked = mayHaveLeftLock(work, ports)
    ? restic.unlock({ ...session, appendLog: () => undefined }).catch(() => undefined)
    : Promise.resolve();
  const { partial, summary } = await restic
    .backup(
      session,
      {
        jail: { folder: place.root.hostPath, readOnly: true, cwd: place.parent },
        name: place.name,
        host: executorId,
        tag: podId,
      },
      watch.onStatus,
    )
    .finally(() => unlocked);
  watch.end();
  if (summary === null) throw new OperationFailure('EngineFailed', 'restic reported no snapshot');

  work.move('verifying', {});
  const snapshot_id = await restic.list(session, summary.snapshot_id, null);
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
  work.note({ snapshot_id, quality });
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
