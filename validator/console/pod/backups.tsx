import { useState } from 'react';
import { Link } from 'wouter';
import type { BackupLog } from '../api/api.gen.ts';
import { Bytes } from '../parts/amounts.tsx';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { type Column, DataTable, Pager } from '../parts/data-table.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { FolderPath } from '../parts/folder-path.tsx';
import { formatCount } from '../parts/format.ts';
import { QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import { useUrlState } from '../parts/use-url-state.tsx';
import { paths } from '../paths.ts';
import { mayDo } from '../renter/pod-actions.ts';
import type { PodTabProps } from '../renter/pod-page.tsx';
import { useAction, useApi } from '../session/queries.tsx';
import { BackupForm } from './backup-form.tsx';
import { drillResult, isRunning, isVerifying, mayDelete } from './backup-rules.ts';
import { BackupSchedule } from './backup-schedule.tsx';
import { OperationState } from './operation-state.tsx';
import { RestoreForm } from './restore-form.tsx';
import { Restores } from './restores.tsx';
import './pod.css';

const PAGE_SIZE = 20;
const RUNNING_MS = 2_000;
const STEADY_MS = 20_000;
const DEFAULTS = { page: 1 };

/** Backups of a pod, its schedule, and restores into it. */
export function PodBackups({ pod }: PodTabProps) {
  return (
    <>
      <Backups pod={pod} />
      <BackupSchedule pod={pod} />
      <Restores pod={pod} />
    </>
  );
}

function Backups({ pod }: PodTabProps) {
  const [{ page }, change] = useUrlState(DEFAULTS);
  const [restoring, setRestoring] = useState<BackupLog | null>(null);
  const [started, setStarted] = useState<string | null>(null);
  const backups = useApi(
    'GET /backup-logs/pod/{pod_id}',
    { params: { pod_id: pod.id }, query: { page, limit: PAGE_SIZE } },
    { refetchMs: (data) => (data?.items.some(isBusy) ? RUNNING_MS : STEADY_MS) },
  );
  const columns: readonly Column<BackupLog>[] = [
    ...COLUMNS,
    {
      key: 'actions',
      title: 'Actions',
      cell: (backup) => <BackupActions backup={backup} onRestore={setRestoring} />,
    },
  ];
  return (
    <QueryPanel
      title="Backups"
      query={backups}
      isEmpty={({ total }) => total === 0}
      empty={
        mayDo(pod.status, 'back-up')
          ? 'There are no backups of this pod. Start one, or add a schedule.'
          : 'There are no backups of this pod. A backup needs a pod that runs or has stopped.'
      }
      actions={mayDo(pod.status, 'back-up') ? <BackupForm pod={pod} /> : null}
    >
      {({ items, total, has_next: hasNext }) => (
        <>
          <div role="status">
            {started === null ? null : (
              <p>
                The restore has started.{' '}
                {started === pod.id ? (
                  'Its progress is below.'
                ) : (
                  <Link href={paths.pod(started, 'backups')}>Show its progress</Link>
                )}
              </p>
            )}
          </div>
          <DataTable caption="Backups" columns={columns} rows={items} rowKey={({ id }) => id} />
          <p className="faint small">
            Sizes are those of the files. The storage keeps files that did not change only once.
          </p>
          <Pager
            page={page}
            hasNext={hasNext}
            total={total}
            onPage={(next) => change({ page: next })}
          />
          <Dialog
            title="Restore a backup"
            isOpen={restoring !== null}
            onClose={() => setRestoring(null)}
          >
            {restoring === null ? null : (
              <RestoreForm
                backup={restoring}
                pod={pod}
                onStarted={(podId) => {
                  setRestoring(null);
                  setStarted(podId);
                }}
              />
            )}
          </Dialog>
        </>
      )}
    </QueryPanel>
  );
}

function isBusy(backup: BackupLog): boolean {
  return isRunning(backup.status) || isVerifying(backup);
}

const COLUMNS: readonly Column<BackupLog>[] = [
  {
    key: 'name',
    title: 'Backup',
    cell: ({ name, created_at: at, backup_config_id: schedule }) => (
      <>
        {name ?? (schedule === null ? 'Backup' : 'Scheduled backup')}{' '}
        <span className="faint small">
          <Time value={at} />
        </span>
      </>
    ),
  },
  {
    key: 'status',
    title: 'Status',
    cell: (backup) => (
      <>
        <OperationState operation={backup} label="Progress of the backup" />
        <Drill backup={backup} />
        <ChangedFiles backup={backup} />
      </>
    ),
  },
  {
    key: 'path',
    title: 'Folder',
    cell: ({ backup_path: path }) => <FolderPath path={path} />,
  },
  {
    key: 'size',
    title: 'Size',
    isNumber: true,
    cell: ({ total_bytes: bytes }) => <Bytes bytes={bytes} />,
  },
  { key: 'expires', title: 'Kept until', cell: ({ expires_at: at }) => <Time value={at} /> },
];

function Drill({ backup }: { backup: BackupLog }) {
  const result = drillResult(backup);
  if (result === null) return null;
  return (
    <div className="small">
      <Status name={result.text} tone={result.tone} />
      {result.detail === null ? null : <>: {result.detail}</>}
    </div>
  );
}

/** Files that changed while they were read, so the backup may have a mixture of their states. */
function ChangedFiles({
  backup: { changed_files: files, changed_files_total: total },
}: BackupProps) {
  if (files === null || files.length === 0) return null;
  return (
    <details className="small">
      <summary>{formatCount(total ?? files.length, 'file')} changed during the backup</summary>
      <ul>
        {files.map((file) => (
          <li key={file}>
            <code>{file}</code>
          </li>
        ))}
      </ul>
    </details>
  );
}

type BackupProps = { backup: BackupLog };

function BackupActions({
  backup,
  onRestore,
}: BackupProps & { onRestore: (backup: BackupLog) => void }) {
  const { id, status } = backup;
  const cancel = useAction('POST /backup-logs/{id}/cancel');
  const verify = useAction('POST /backup-logs/{id}/verify');
  const remove = useAction('DELETE /backup-logs/{id}');
  return (
    <div className="row">
      {isRunning(status) ? (
        <ConfirmDialog
          trigger="Cancel"
          title="Cancel the backup?"
          action="Cancel the backup"
          onConfirm={() => cancel.mutateAsync({ params: { id } })}
        >
          <p>Nothing of it is kept. Earlier backups stay.</p>
        </ConfirmDialog>
      ) : null}
      {status === 'COMPLETED' ? (
        <>
          <button type="button" onClick={() => onRestore(backup)}>
            Restore
          </button>
          <ConfirmDialog
            trigger="Verify"
            title="Verify the backup?"
            action="Verify"
            isDisabled={isVerifying(backup)}
            onConfirm={() => verify.mutateAsync({ params: { id } })}
          >
            <p>
              The node restores the backup to a temporary folder, compares every file and removes
              the folder. The pod keeps running, and its files do not change.
            </p>
          </ConfirmDialog>
        </>
      ) : null}
      {mayDelete(backup) ? (
        <ConfirmDialog
          trigger="Delete"
          title="Delete the backup?"
          action="Delete"
          isDangerous
          onConfirm={() => remove.mutateAsync({ params: { id } })}
        >
          <p>Its files cannot be restored afterwards. The pod and other backups stay.</p>
        </ConfirmDialog>
      ) : null}
    </div>
  );
}
