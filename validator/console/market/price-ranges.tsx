import type { ExecutorStatsResponse } from '../api/api.gen.ts';
import { Money } from '../parts/amounts.tsx';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { useApi } from '../session/queries.tsx';

const COLUMNS: readonly Column<ExecutorStatsResponse>[] = [
  { key: 'gpu', title: 'GPU', cell: ({ machine_name: name }) => name },
  {
    key: 'free',
    title: 'Free GPUs',
    isNumber: true,
    cell: ({ available_gpu_count: free, total_gpu_count: all }) => `${free} of ${all}`,
  },
  {
    key: 'least',
    title: 'Lowest per GPU',
    isNumber: true,
    cell: ({ min_price_per_gpu: usd }) => <Money usd={usd} per="h" />,
  },
  {
    key: 'mean',
    title: 'Mean per GPU',
    isNumber: true,
    cell: ({ avg_price_per_gpu: usd }) => <Money usd={usd} per="h" />,
  },
  {
    key: 'most',
    title: 'Highest per GPU',
    isNumber: true,
    cell: ({ max_price_per_gpu: usd }) => <Money usd={usd} per="h" />,
  },
];

/** Prices of the whole market by GPU type; with `machine`, of this GPU only. */
export function PriceRanges({ machine }: { machine?: string }) {
  const stats = useApi('GET /executors/stats', {});
  const shown = (rows: readonly ExecutorStatsResponse[]) =>
    rows.filter(({ machine_name: name }) => machine === undefined || name === machine);
  return (
    <QueryPanel
      title="Prices in the market"
      query={stats}
      isEmpty={(rows) => shown(rows).length === 0}
      empty="No node is offered. Prices appear with the first node."
    >
      {(rows) => (
        <DataTable
          caption="Prices by GPU"
          columns={COLUMNS}
          rows={shown(rows)}
          rowKey={({ machine_name: name }) => name}
        />
      )}
    </QueryPanel>
  );
}
