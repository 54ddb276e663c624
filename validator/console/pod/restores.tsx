import type { RestoreLogResponse } from '../api/api.gen.ts';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { type Column, DataTable, Pager } from '../parts/data-table.tsx';
import { FolderPath } from '../parts/folder-path.tsx';
import { formatCount } from '../parts/format.ts';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { useUrlState } from '../parts/use-url-state.tsx';
import type { PodTabProps } from '../renter/pod-page.tsx';
import { useAction, useApi } from '../session/queries.tsx';
import { isRunning } from './backup-rules.ts';
import { OperationState } from './operation-state.tsx';

const PAGE_SIZE = 20;
const RUNNING_MS = 2_000;
const STEADY_MS = 20_000;
const DEFAULTS = { restores: 1 };

const COLUMNS: readonly Column<RestoreLogResponse>[] = [
  { key: 'started', title: 'Restore', cell: ({ created_at: at }) => <Time value={at} /> },
  {
    key: 'status',
    title: 'Status',
    cell: (restore) => (
      <>
        <OperationState operation={restore} label="Progress of the restore" />
        {restore.restarted_pod === true ? (
          <div className="small">It restarted the pod, because the folder was in use.</div>
        ) : null}
        <LostFiles restore={restore} />
      </>
    ),
  },
  { key: 'path', title: 'Folder', cell: ({ restore_path: path }) => <FolderPath path={path} /> },
  {
    key: 'mode',
    title: 'Mode',
    cell: ({ mode, salvage }) =>
      `${mode === 'replace' ? 'replace' : 'new folder'}${salvage ? ', salvage' : ''}`,
  },
  { key: 'actions', title: 'Actions', cell: (restore) => <RestoreActions restore={restore} /> },
];

/** Restores into a pod, newest first. */
export function Restores({ pod }: PodTabProps) {
  const [{ restores: page }, change] = useUrlState(DEFAULTS);
  const restores = useApi(
    'GET /pods/{pod_uuid}/restore-logs',
    { params: { pod_uuid: pod.id }, query: { page, limit: PAGE_SIZE } },
    {
      refetchMs: (data) =>
        data?.items.some(({ status }) => isRunning(status)) ? RUNNING_MS : STEADY_MS,
    },
  );
  return (
    <QueryPanel
      title="Restores"
      query={restores}
      isEmpty={({ total }) => total === 0}
      empty="Nothing was restored into this pod. Choose “Restore” beside a backup."
    >
      {({ items, total, has_next: hasNext }) => (
        <>
          <DataTable caption="Restores" columns={COLUMNS} rows={items} rowKey={({ id }) => id} />
          <Pager
            page={page}
            hasNext={hasNext}
            total={total}
            onPage={(next) => change({ restores: next })}
          />
        </>
      )}
    </QueryPanel>
  );
}

function RestoreActions({ restore: { id, status } }: { restore: RestoreLogResponse }) {
  const cancel = useAction('POST /restore-logs/{id}/cancel');
  if (!isRunning(status)) return null;
  return (
    <ConfirmDialog
      trigger="Cancel"
      title="Cancel the restore?"
      action="Cancel the restore"
      onConfirm={() => cancel.mutateAsync({ params: { id } })}
    >
      <p>The folder keeps its present content.</p>
    </ConfirmDialog>
  );
}

function LostFiles({ restore }: { restore: RestoreLogResponse }) {
  const { lost_files: files, lost_files_total: total } = restore;
  if (files === null || files.length === 0) return null;
  return (
    <details className="small">
      <summary className="warn-text">
        {formatCount(total ?? files.length, 'path')} could not be restored
      </summary>
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
