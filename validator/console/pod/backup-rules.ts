/** Actions on a backup or restore by its state, and texts about it. Pure. */
import type { BackupLog, RestoreLogResponse } from '../api/api.gen.ts';
import { formatCount } from '../parts/format.ts';
import type { Tone } from '../parts/tone.ts';

export type OperationStatus = BackupLog['status'] | RestoreLogResponse['status'];

const TONES: Record<OperationStatus, Tone> = {
  PENDING: 'busy',
  IN_PROGRESS: 'busy',
  COMPLETED: 'good',
  FAILED: 'bad',
  CANCELLED: 'idle',
  SKIPPED: 'warn',
  EXPIRED: 'idle',
  DELETED: 'idle',
};

export function toneOfOperation(status: OperationStatus): Tone {
  return TONES[status];
}

/** True while a backup or restore runs; it can be cancelled then. */
export function isRunning(status: OperationStatus): boolean {
  return TONES[status] === 'busy';
}

/** True while a drill runs. */
export function isVerifying({ verify_status: status }: Pick<BackupLog, 'verify_status'>): boolean {
  return status === 'PENDING' || status === 'IN_PROGRESS';
}

const DELETABLE: readonly OperationStatus[] = ['COMPLETED', 'FAILED', 'CANCELLED', 'SKIPPED'];

export function mayDelete(backup: Pick<BackupLog, 'status' | 'deletion_state'>): boolean {
  return DELETABLE.includes(backup.status) && backup.deletion_state === null;
}

export type DrillResult = { text: string; tone: Tone; detail: string | null };

/** Describes the result of the last drill of a backup; null without a drill. */
export function drillResult(
  backup: Pick<BackupLog, 'verify_status' | 'verify_error' | 'verified_files'>,
): DrillResult | null {
  const { verify_status: status, verify_error: error, verified_files: files } = backup;
  switch (status) {
    case null:
      return null;
    case 'PENDING':
    case 'IN_PROGRESS':
      return { text: 'A test restore runs', tone: 'busy', detail: null };
    case 'PASSED':
      return {
        text: 'Test restore passed',
        tone: 'good',
        detail: files === null ? null : formatCount(files, 'file'),
      };
    case 'FAILED':
      return { text: 'Test restore failed', tone: 'bad', detail: error };
    case 'INCONCLUSIVE':
      return { text: 'Test restore without result', tone: 'warn', detail: error };
    case 'CANCELLED':
      return { text: 'Test restore cancelled', tone: 'idle', detail: null };
  }
}

const SECONDS_PER_MINUTE = 60;

type Progress = Pick<
  BackupLog,
  | 'processed_files'
  | 'total_files'
  | 'processed_bytes'
  | 'total_bytes'
  | 'throughput_bytes_per_second'
  | 'estimated_remaining_seconds'
>;

/** Parts of a sentence about the progress; parts that the node has not measured are left out. */
export function progressParts(progress: Progress, bytes: (value: number) => string): string[] {
  const { processed_bytes: bytesDone, total_bytes: bytesTotal } = progress;
  const { processed_files: filesDone, total_files: filesTotal } = progress;
  const { throughput_bytes_per_second: speed, estimated_remaining_seconds: left } = progress;
  const parts: string[] = [];
  if (bytesDone !== null) parts.push(ofTotal(bytes(bytesDone), bytesTotal, bytes));
  if (filesDone !== null) parts.push(ofTotal(formatCount(filesDone, 'file'), filesTotal, String));
  if (speed !== null) parts.push(`${bytes(speed)}/s`);
  if (left !== null) parts.push(`about ${Math.ceil(left / SECONDS_PER_MINUTE)} min left`);
  return parts;
}

function ofTotal(done: string, total: number | null, format: (value: number) => string): string {
  return total === null ? done : `${done} of ${format(total)}`;
}
