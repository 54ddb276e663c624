import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { DataTable } from '../parts/data-table.tsx';
import { Facts } from '../parts/facts.tsx';
import { formatDuration, wordsOf } from '../parts/format.ts';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import { useAction, useApi } from '../session/queries.tsx';
import { ReasonDialog } from './reason-dialog.tsx';

const REFETCH_MS = 10_000;
const RUNNING_MS = 2_000;

/** Queues, ledger proof and clock of the central API. */
export function HealthPage() {
  return (
    <Page title="Health">
      <Queues />
      <LedgerProof />
      <ServerClock />
    </Page>
  );
}

function Queues() {
  const queues = useApi('GET /operator/queues', {}, { refetchMs: REFETCH_MS });
  return (
    <QueryPanel
      title="Queues"
      query={queues}
      isEmpty={(data) => data.queues.length === 0}
      empty="No work is due."
    >
      {(data) => (
        <DataTable
          caption="Queues"
          rows={data.queues}
          rowKey={({ kind }) => kind}
          columns={[
            { key: 'kind', title: 'Queue', cell: ({ kind }) => wordsOf(kind) },
            { key: 'due', title: 'Due', isNumber: true, cell: ({ due }) => due },
            { key: 'failing', title: 'Failing', isNumber: true, cell: ({ failing }) => failing },
            {
              key: 'age',
              title: 'Age of the oldest',
              isNumber: true,
              cell: (row) =>
                row.oldest_due_at === null ? '–' : formatDuration(row.oldest_age_seconds * 1_000),
            },
          ]}
        />
      )}
    </QueryPanel>
  );
}

const PROOF_TONES = { none: 'idle', running: 'busy', done: 'good', failed: 'bad' } as const;

/** Recomputes all balances from the ledger. */
function LedgerProof() {
  const proof = useApi(
    'GET /operator/ledger-proof',
    {},
    { refetchMs: (data) => (data?.state === 'running' ? RUNNING_MS : REFETCH_MS) },
  );
  const start = useAction('POST /operator/ledger-proof');
  return (
    <QueryPanel
      title="Ledger proof"
      query={proof}
      actions={
        <ConfirmDialog
          trigger="Start a proof"
          title="Start a proof of the ledger?"
          action="Start"
          isDisabled={proof.data?.state === 'running'}
          onConfirm={() => start.mutateAsync({})}
        >
          <p>The server reads the whole ledger and changes nothing. Rentals continue meanwhile.</p>
        </ConfirmDialog>
      }
    >
      {(data) =>
        data.state === 'none' ? (
          <p className="empty">No proof has run. Start one to check all balances.</p>
        ) : (
          <>
            {data.state === 'running' ? (
              <p className="hint">A proof runs. Another can start when it has ended.</p>
            ) : null}
            <Facts
              facts={[
                ['State', <Status key="state" name={data.state} tone={PROOF_TONES[data.state]} />],
                ['Result', <ProofResult key="result" holds={data.holds} error={data.error} />],
                ['Started', <Time key="started" value={data.started_at} />],
                ['Finished', <Time key="finished" value={data.finished_at} />],
                ['Transfers', data.transfers ?? '–'],
                ['Accounts', data.accounts ?? '–'],
                ['Open holds', data.open_holds ?? '–'],
                ['Hash of the balances', <code key="hash">{data.balance_hash ?? '–'}</code>],
              ]}
            />
            {data.findings.map(({ rule, where, what }) => (
              <p key={`${rule} ${where}`} className="notice bad">
                <code>{rule}</code> {where}: {what}
              </p>
            ))}
            {data.more_findings === 0 ? null : <p>{data.more_findings} further findings.</p>}
          </>
        )
      }
    </QueryPanel>
  );
}

function ProofResult({ holds, error }: { holds: boolean | null; error: string | null }) {
  if (error !== null) return error;
  if (holds === null) return 'not finished';
  return (
    <Status
      name={holds ? 'All balances are correct' : 'Balances differ'}
      tone={holds ? 'good' : 'bad'}
    />
  );
}

function ServerClock() {
  const clock = useApi('GET /operator/clock', {}, { refetchMs: REFETCH_MS });
  const confirm = useAction('POST /operator/clock/confirm');
  return (
    <QueryPanel title="Clock" query={clock}>
      {(data) => (
        <>
          <Facts
            facts={[
              [
                'State',
                <Status
                  key="state"
                  name={data.state}
                  tone={data.state === 'trusted' ? 'good' : 'bad'}
                />,
              ],
              ['Time in use', <Time key="time" value={data.time} />],
              ['Time of the host', <Time key="host" value={data.host_time} />],
              ['Time of other processes', <Time key="peer" value={data.peer_time} />],
              ['Reason', data.reason === null ? 'none' : wordsOf(data.reason)],
            ]}
          />
          {data.state === 'trusted' ? null : (
            <ReasonDialog
              trigger="Confirm the host's time"
              title="Confirm that the time of the host is correct?"
              action="Confirm"
              isDangerous
              onConfirm={(reason) => confirm.mutateAsync({ body: { reason } })}
            >
              <p>
                Billing and expiry continue with this time. A wrong time charges renters wrongly.
              </p>
            </ReasonDialog>
          )}
        </>
      )}
    </QueryPanel>
  );
}
