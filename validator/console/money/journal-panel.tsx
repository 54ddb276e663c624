import type { UseQueryResult } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { Link } from 'wouter';
import type { LedgerLine, LedgerPage, User } from '../api/api.gen.ts';
import { saveFile } from '../browser/save-file.ts';
import { ActionButton } from '../parts/action-button.tsx';
import { Money } from '../parts/amounts.tsx';
import { type Column, DataTable, Pager } from '../parts/data-table.tsx';
import { Facts } from '../parts/facts.tsx';
import { wordsOf } from '../parts/format.ts';
import { timeOfField } from '../parts/local-time.ts';
import { Outcome } from '../parts/outcome.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import type { Check } from '../parts/url-state.ts';
import { useUrlState } from '../parts/use-url-state.tsx';
import { paths } from '../paths.ts';
import { useApi } from '../session/queries.tsx';
import { useClient } from '../session/session.tsx';
import { CSV_LINES, newestMicro, podOf, postedMicro, readJournalCsv, titleOf } from './journal.ts';
import { PodStatementView } from './pod-statement.tsx';

const PAGE_SIZE = 25;
const DEFAULTS = { since: '' };
const aTime: Check = (text) => (timeOfField(text) === null ? 'is not a time' : null);
const CHECKS = { since: aTime };

type Opened = { seq: number | null; toggle: (seq: number) => void };

const columnsOf = ({ seq, toggle }: Opened): readonly Column<LedgerLine>[] => [
  {
    key: 'cause',
    title: 'Line',
    cell: (line) => (
      <button
        type="button"
        className="quiet"
        aria-expanded={line.seq === seq}
        onClick={() => toggle(line.seq)}
      >
        {titleOf(line)}
      </button>
    ),
  },
  { key: 'at', title: 'Time', cell: ({ at }) => <Time value={at} /> },
  {
    key: 'amount',
    title: 'Amount',
    isNumber: true,
    cell: ({ amount_usd: usd }) => <Money usd={usd} isExact />,
  },
  {
    key: 'held',
    title: 'Reserved',
    isNumber: true,
    cell: ({ held_usd: usd }) => (usd === 0 ? '–' : <Money usd={usd} isExact />),
  },
  {
    key: 'balance',
    title: 'Balance',
    isNumber: true,
    cell: ({ balance_usd: usd }) => <Money usd={usd} isExact />,
  },
];

type JournalProps = { account: Reading<User> };
type Reading<Data> = Pick<UseQueryResult<Data, Error>, 'data' | 'refetch'>;

/**
 * The journal, newest line first. Each line shows its cause; for a pod, its metered intervals. The page shows the
 * balance of `account` above.
 */
export function Journal({ account }: JournalProps) {
  const [{ since }, change] = useUrlState(DEFAULTS, CHECKS);
  // The API pages by number: `befores` has the starts of the pages after the first.
  const [befores, setBefores] = useState<readonly number[]>([]);
  const before = befores.at(-1);
  const [openedSeq, setOpenedSeq] = useState<number | null>(null);
  const opened: Opened = {
    seq: openedSeq,
    toggle: (seq) => setOpenedSeq(seq === openedSeq ? null : seq),
  };
  const from = timeOfField(since);
  const journal = useApi('GET /users/me/ledger', {
    query: { order: 'desc', limit: PAGE_SIZE, before, ...(from === null ? {} : { since: from }) },
  });
  useSameInstant(account, journal, before === undefined && !journal.isPlaceholderData);
  return (
    <QueryPanel
      title="Journal"
      query={journal}
      actions={
        <>
          <label className="row">
            Since
            <input
              type="datetime-local"
              value={since}
              onChange={({ target }) => {
                setBefores([]);
                change({ since: target.value });
              }}
            />
          </label>
          <SaveCsv />
        </>
      }
      isEmpty={(page) => typeof page !== 'string' && page.lines.length === 0}
      empty={since === '' ? 'No money has moved yet.' : 'No money has moved since that time.'}
    >
      {(page) =>
        // The API returns text only for CSV.
        typeof page === 'string' ? null : (
          <>
            <DataTable
              caption="Journal"
              rows={page.lines}
              rowKey={({ seq }) => String(seq)}
              columns={columnsOf(opened)}
              detail={(line) => (line.seq === openedSeq ? <LineDetail line={line} /> : null)}
            />
            <Pager
              page={befores.length + 1}
              hasNext={page.next_before !== null}
              onPage={(next) => {
                const { next_before: following } = page;
                if (next <= befores.length) setBefores(befores.slice(0, -1));
                else if (following !== null) setBefores([...befores, following]);
              }}
            />
          </>
        )
      }
    </QueryPanel>
  );
}

/** Reads balance and journal again if one of them is older than the last posting, so that they add up. */
function useSameInstant(
  account: Reading<User>,
  journal: Reading<LedgerPage | string>,
  isNewest: boolean,
): void {
  const posted = postedMicro(account.data);
  const newest = isNewest ? newestMicro(journal.data) : null;
  const { refetch: readAccount } = account;
  const { refetch: readJournal } = journal;
  useEffect(() => {
    if (posted === null || newest === null || posted === newest) return;
    void readAccount();
    void readJournal();
  }, [posted, newest, readAccount, readJournal]);
}

function LineDetail({ line }: { line: LedgerLine }) {
  const podId = podOf(line);
  return (
    <>
      <Facts
        facts={[
          ['Kind', wordsOf(line.kind)],
          ['Credit', wordsOf(line.credit)],
          ['Other account', line.counterpart],
          ['Cause', <code key="cause">{line.cause_id}</code>],
          ['Line', line.seq],
        ]}
      />
      {podId === null ? null : (
        <>
          <p>
            <Link href={paths.statement(podId)}>Statement of the pod</Link>
          </p>
          <PodStatementView podId={podId} />
        </>
      )}
    </>
  );
}

/** Saves the whole journal. */
function SaveCsv() {
  const { open } = useClient();
  const [outcome, setOutcome] = useState<string | null>(null);
  const read = async (after: number) => {
    const query = new URLSearchParams({
      format: 'csv',
      limit: String(CSV_LINES),
      after: String(after),
    });
    const headers = { Accept: 'text/csv, application/problem+json' };
    return (await open(`/api/users/me/ledger?${query}`, { headers })).text();
  };
  return (
    <>
      <ActionButton
        label="Save as CSV"
        run={async () => {
          const { text, lines, isComplete } = await readJournalCsv(read);
          saveFile('journal.csv', [text]);
          setOutcome(
            `${lines.toLocaleString('en-US')} lines are saved.${isComplete ? '' : ' The file has the oldest lines only.'}`,
          );
        }}
      />
      <Outcome>{outcome}</Outcome>
    </>
  );
}
