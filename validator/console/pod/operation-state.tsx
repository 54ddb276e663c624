import type { BackupLog, RestoreLogResponse } from '../api/api.gen.ts';
import { formatBytes } from '../parts/format.ts';
import { Status } from '../parts/status.tsx';
import { isRunning, progressParts, toneOfOperation } from './backup-rules.ts';

/** State of a backup or restore: its progress while it runs, and its error with code. */
export function OperationState({
  operation,
  label,
}: {
  operation: BackupLog | RestoreLogResponse;
  /** Names the progress for screen readers. */
  label: string;
}) {
  const { status, stage, progress, error_message: error, error_code: code } = operation;
  return (
    <>
      <Status name={status} tone={toneOfOperation(status)} />
      {isRunning(status) ? (
        <div className="small">
          <progress className="progress" max={100} value={progress} aria-label={label} />{' '}
          {Math.round(progress)} %{stage === null ? '' : ` ${stage.toLowerCase()}`}
          <div className="faint">
            {[...progressParts(operation, formatBytes), operation.status_message]
              .filter((part) => part !== null)
              .join(' · ')}
          </div>
        </div>
      ) : null}
      {error === null ? null : (
        <div className="small">
          {error} {code === null ? null : <code>{code}</code>}
        </div>
      )}
    </>
  );
}
