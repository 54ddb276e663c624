import { useState } from 'react';
import { parseApiTime } from '../browser/clock.ts';
import { Money } from '../parts/amounts.tsx';
import { DataTable, Pager } from '../parts/data-table.tsx';
import { formatDuration, wordsOf } from '../parts/format.ts';
import { Time } from '../parts/time.tsx';
import type { Interval } from './statement-lines.ts';

/** Intervals shown at once, so that a long statement stays quick. */
const PAGE_SIZE = 50;

/** Metered intervals of a line of a statement, oldest first. */
export function IntervalTable({ intervals }: { intervals: readonly Interval[] }) {
  const [page, setPage] = useState(1);
  const end = page * PAGE_SIZE;
  return (
    <>
      <DataTable
        caption="Metered intervals"
        rows={intervals.slice(end - PAGE_SIZE, end)}
        rowKey={({ from, to, cause }) => `${from} ${to} ${cause}`}
        columns={[
          { key: 'from', title: 'From', cell: ({ from }) => <Time value={from} /> },
          { key: 'to', title: 'To', cell: ({ to }) => <Time value={to} /> },
          { key: 'length', title: 'Length', cell: (interval) => lengthOf(interval) },
          { key: 'cause', title: 'Cause', cell: ({ cause }) => wordsOf(cause) },
          {
            key: 'amount',
            title: 'Amount',
            isNumber: true,
            cell: ({ amount }) => <Money usd={amount} isExact />,
          },
        ]}
      />
      <Pager page={page} hasNext={intervals.length > end} onPage={setPage} />
    </>
  );
}

function lengthOf({ from, to }: Interval): string {
  return formatDuration((parseApiTime(to) ?? 0) - (parseApiTime(from) ?? 0));
}
