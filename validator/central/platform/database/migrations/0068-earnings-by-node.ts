/** An index with all values of a provider's earnings by node, which are summed for each request. */
import type { SqlDialect } from '../sql-dialects.ts';

export const earningsByNode = (_: SqlDialect): string[] => [
  `create index billing_periods_by_node on billing_periods (
    provider_id, executor_id, billed_ms, gross_uusd, net_uusd, refunded_gross_uusd, refunded_net_uusd
  )`,
];
