/** Sums of a provider's statement. Pure. */
import type { BillingRow } from '../api/portal.gen.ts';

export type NodeEarnings = {
  nodeId: string;
  seconds: number;
  gross: number;
  fee: number;
  net: number;
};

/** Sums rows by node, the highest net amount first. Reversed rows, and amounts that are not known, do not count. */
export function earningsByNode(rows: readonly BillingRow[]): NodeEarnings[] {
  const sums = new Map<string, NodeEarnings>();
  for (const row of rows.filter(({ status }) => status !== 'reversed')) {
    const { executor_id: nodeId } = row;
    const sum = sums.get(nodeId) ?? { nodeId, seconds: 0, gross: 0, fee: 0, net: 0 };
    sums.set(nodeId, {
      nodeId,
      seconds: sum.seconds + row.seconds,
      gross: sum.gross + (row.gross_usd ?? 0),
      fee: sum.fee + (row.fee_usd ?? 0),
      net: sum.net + (row.net_usd ?? 0),
    });
  }
  return [...sums.values()].toSorted((a, b) => b.net - a.net);
}
