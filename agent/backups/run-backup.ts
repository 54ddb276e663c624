/** One backup, from its path to a verified snapshot (agent reference 14). */

import { locate } from './data-path.ts';
import { OperationFailure } from './operation.state.ts';
import type { BackupRow } from './operation.store.ts';
import type { RunPorts, Working } from './operation-context.ts';
import type { BackupStatus } from './restic-output.ts';

/** Resolves when the snapshot is known to be there; rejects with OperationFailure or the signal's reason. */
export async function runBackup(work: Working<BackupRow>, ports: RunPorts): Promise<void> {
  const { restic, executorId } = ports;
  const { pod_id: podId, request } = work.row();
  work.move('preparing', {});
  const roots = await ports.dataRootsOf(podId);
  const place = await locate(roots, request.path, 'must_be_there');
  const talk = work.talk([
    [place.live, request.path],
    [place.root.hostPath, place.root.mountPath],
  ]);
  await restic.checkVersion(talk.signal);
  if (request.create_repository) await restic.make(talk);

  work.move('uploading', {});
  work.say(`Backing up ${request.path}; it is read while the pod runs (crash-consistent)`);
  const watch = watchProgress(work, ports);
  // Beside the backup, which stale locks do not stop; what is wrong with the repository, that tells.
  const unlocked = mayHaveLeftLock(work, ports)
    ? restic.unlock({ ...talk, say: () => undefined }).catch(() => undefined)
    : Promise.resolve();
  const { partial, summary } = await restic
    .backup(
      talk,
      {
        jail: { folder: place.root.hostPath, readOnly: true, cwd: place.parent },
        name: place.name,
        host: executorId,
        tag: podId,
      },
      watch.told,
    )
    .finally(() => unlocked);
  watch.end();
  if (summary === null) throw new OperationFailure('EngineFailed', 'restic told of no snapshot');

  work.move('verifying', {});
  const snapshot_id = await restic.list(talk, summary.snapshot_id, null);
  const { total_files_processed: files, total_bytes_processed: bytes } = summary;
  const quality = partial ? 'partial' : 'full';
  work.say(
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

/** A restic of ours was killed, as far as is known here; each start of one takes half a second. */
function mayHaveLeftLock(work: Working<BackupRow>, { store }: RunPorts): boolean {
  const { pod_id: podId, attempts, request } = work.row();
  if (request.create_repository) return false;
  const last = store.lastOf(podId);
  return attempts > 1 || (last !== null && last.stage !== 'done');
}

const MS_PER_SECOND = 1_000;

/** restic tells of whole blobs, which may take their time: rate and remaining time are true between them, too. */
function watchProgress(work: Working<BackupRow>, { clock }: RunPorts) {
  const startedMs = clock.monotonicMs();
  let last: BackupStatus | null = null;
  work.onBeat(() => {
    if (last === null) return;
    const seconds = Math.max((clock.monotonicMs() - startedMs) / MS_PER_SECOND, 0.001);
    work.advance(progressOf(last, last.bytes_done / seconds));
  });
  return {
    told(status: BackupStatus): void {
      last = status;
    },
    end: () => work.onBeat(() => undefined),
  };
}

/** `rate`: bytes a second. */
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
