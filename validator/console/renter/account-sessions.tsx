import type { Session } from '../api/api.gen.ts';
import { ActionButton } from '../parts/action-button.tsx';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { type Column, DataTable, Pager } from '../parts/data-table.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { useUrlState } from '../parts/use-url-state.tsx';
import { useAction, useApi } from '../session/queries.tsx';
import { clientWords } from './client-words.ts';

const PAGE_SIZE = 20;
const DEFAULTS = { page: 1 };

const COLUMNS: readonly Column<Session>[] = [
  {
    key: 'client',
    title: 'Program',
    cell: ({ client, current }) => (
      <>
        {client === null ? 'unknown' : <span title={client}>{clientWords(client)}</span>}{' '}
        {current ? <span className="tag">this session</span> : null}
      </>
    ),
  },
  { key: 'began', title: 'Log-in', cell: ({ created_at: at }) => <Time value={at} /> },
  { key: 'expires', title: 'Expires', cell: ({ expires_at: at }) => <Time value={at} relative /> },
  { key: 'actions', title: 'Actions', cell: (session) => <EndButton session={session} /> },
];

/** Sessions of the account, each of which can be ended. */
export function AccountSessions() {
  const [{ page }, change] = useUrlState(DEFAULTS);
  const query = { page, limit: PAGE_SIZE };
  const sessions = useApi('GET /users/me/sessions', { query });
  const endOthers = useAction('DELETE /users/me/sessions');
  return (
    <QueryPanel
      title="Sessions"
      query={sessions}
      isEmpty={({ total }) => total === 0}
      empty="No session is valid."
      actions={
        <ConfirmDialog
          trigger="End all other sessions"
          title="End all other sessions?"
          action="End them"
          isDangerous
          isDisabled={(sessions.data?.total ?? 0) <= 1}
          onConfirm={() => endOthers.mutateAsync({})}
        >
          <p>Other browsers and programs must log in again. API keys still work.</p>
        </ConfirmDialog>
      }
    >
      {({ sessions: rows, total }) => (
        <>
          {total > 1 ? null : <p className="hint">There is no other session to end.</p>}
          <DataTable caption="Sessions" rows={rows} rowKey={({ id }) => id} columns={COLUMNS} />
          <Pager
            page={page}
            hasNext={total > page * PAGE_SIZE}
            total={total}
            onPage={(next) => change({ page: next })}
          />
        </>
      )}
    </QueryPanel>
  );
}

function EndButton({ session }: { session: Session }) {
  const end = useAction('DELETE /users/me/sessions/{id}');
  if (session.current) return <span className="small faint">Use Log out.</span>;
  return <ActionButton label="End" run={() => end.mutateAsync({ params: { id: session.id } })} />;
}
