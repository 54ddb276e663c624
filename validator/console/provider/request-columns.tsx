import type { PortalRequest } from '../api/portal.gen.ts';
import { Money } from '../parts/amounts.tsx';
import type { Column } from '../parts/data-table.tsx';
import { Time } from '../parts/time.tsx';

/** Columns of machine requests of renters. */
export const REQUEST_COLUMNS: readonly Column<PortalRequest>[] = [
  {
    key: 'gpu',
    title: 'GPUs',
    cell: ({ gpu_class: gpu, gpu_count: count }) =>
      `${count === null ? 'any number of' : `${count} ×`} ${gpu}`,
  },
  {
    key: 'budget',
    title: 'Budget',
    isNumber: true,
    cell: ({ hourly_budget: budget }) =>
      budget === null ? 'any' : <Money usd={budget} per="h for all GPUs" />,
  },
  { key: 'country', title: 'Country', cell: ({ country }) => country ?? 'any' },
  { key: 'notes', title: 'Notes of the renter', cell: ({ notes }) => notes ?? '–' },
  { key: 'created', title: 'Since', cell: ({ created_at: at }) => <Time value={at} /> },
];
