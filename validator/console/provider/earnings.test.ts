import { expect, it } from 'vitest';
import { earningsByNode } from './earnings.ts';

const row = (executor_id: string, net: number | null, status: 'pending' | 'paid' | 'reversed') => ({
  id: `${executor_id}-${net}-${status}`,
  executor_id,
  pod_id: null,
  gpu_type: 'H100',
  gpu_count: 1,
  period_start: '2027-01-01T00:00:00',
  period_end: '2027-01-02T00:00:00',
  seconds: 60,
  gross_usd: net === null ? null : net + 1,
  fee_usd: net === null ? null : 1,
  net_usd: net,
  status,
});

it('sums by node without reversed and unknown amounts', () => {
  const rows = [
    row('a', 1, 'paid'),
    row('b', 5, 'pending'),
    row('a', 2, 'pending'),
    row('a', 9, 'reversed'),
    row('b', null, 'pending'),
  ];
  expect(earningsByNode(rows)).toEqual([
    { nodeId: 'b', seconds: 120, gross: 6, fee: 1, net: 5 },
    { nodeId: 'a', seconds: 120, gross: 5, fee: 2, net: 3 },
  ]);
});
