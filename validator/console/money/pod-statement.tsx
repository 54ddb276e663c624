import { useState } from 'react';
import { Link, useParams } from 'wouter';
import type { PodStatement } from '../api/api.gen.ts';
import { Money } from '../parts/amounts.tsx';
import { type Column, DataTable, Pager } from '../parts/data-table.tsx';
import { wordsOf } from '../parts/format.ts';
import { ObjectContent } from '../parts/object-content.tsx';
import { Page } from '../parts/page.tsx';
import { Panel, QueryContent } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { paths } from '../paths.ts';
import { useApi } from '../session/queries.tsx';
import { StatementFacts } from './statement-facts.tsx';

const PAGE_SIZE = 50;

type Interval = PodStatement['lines'][number];

const COLUMNS: readonly Column<Interval>[] = [
  {
    key: 'state',
    title: 'State',
    cell: ({ state, cause }) => (
      <>
        {wordsOf(state)}{' '}
        {wordsOf(cause) === wordsOf(state) ? null : (
          <span className="faint small">{wordsOf(cause)}</span>
        )}
      </>
    ),
  },
  { key: 'from', title: 'From', cell: ({ from }) => <Time value={from} /> },
  { key: 'to', title: 'To', cell: ({ to }) => <Time value={to} /> },
  {
    key: 'rate',
    title: 'Price',
    isNumber: true,
    cell: ({ gpu_count: count, price_per_gpu: price }) => (
      <>
        {count} × <Money usd={price} per="h" />
      </>
    ),
  },
  {
    key: 'amount',
    title: 'Amount',
    isNumber: true,
    cell: ({ amount }) => <Money usd={amount} isExact />,
  },
];

/** The cost of a pod: its total and its metered intervals, oldest first. */
export function PodStatementView({ podId }: { podId: string }) {
  const statement = useApi('GET /pods/{id}/statement', { params: { id: podId } });
  return (
    <ObjectContent query={statement} what="pod" list={{ path: paths.pods, title: 'your pods' }}>
      <QueryContent query={statement}>
        {(data) => (
          <>
            <StatementFacts statement={data} />
            {data.lines.length === 0 ? (
              <p className="empty">The pod has not run, so nothing was charged.</p>
            ) : (
              <Intervals lines={data.lines} />
            )}
          </>
        )}
      </QueryContent>
    </ObjectContent>
  );
}

function Intervals({ lines }: { lines: readonly Interval[] }) {
  const [page, setPage] = useState(1);
  const start = (page - 1) * PAGE_SIZE;
  return (
    <>
      <DataTable
        caption="Metered intervals"
        rows={lines.slice(start, start + PAGE_SIZE)}
        rowKey={({ from, state, to }) => `${from} ${to} ${state}`}
        columns={COLUMNS}
      />
      {lines.length <= PAGE_SIZE ? null : (
        <Pager
          page={page}
          hasNext={lines.length > start + PAGE_SIZE}
          total={lines.length}
          onPage={setPage}
        />
      )}
    </>
  );
}

export function StatementPage() {
  const { id = '' } = useParams<{ id: string }>();
  return (
    <Page
      title="Statement of a pod"
      lead={<code>{id}</code>}
      actions={
        <>
          <Link href={paths.pod(id)}>Pod</Link>
          <Link href={paths.money}>Money</Link>
        </>
      }
    >
      <Panel title="Cost">
        <PodStatementView podId={id} />
      </Panel>
    </Page>
  );
}
