/** Fees that renters have paid for each node, from which validators compute rewards. */
import type { SqlDialect } from '../sql-dialects.ts';

export const paidFees = ({ int, tableEnd }: SqlDialect): string[] => [
  `create table executor_fees (
    executor_id text primary key references executors (id),
    fee_uusd ${int} not null
  ) ${tableEnd}`,
  // `netFee` of ledger/shares.ts on paid credit that was not returned, for each pod.
  `insert into executor_fees (executor_id, fee_uusd)
    select executor_id, sum(fee - fee * 20 / 100) from (
      select executor_id, paid - paid * 95 / 100 as fee from (
        select executor_id, charged_uusd - granted_uusd - absorbed_uusd - case
          when refunded_uusd <= absorbed_uusd then 0
          when refunded_uusd <= charged_uusd - granted_uusd then refunded_uusd - absorbed_uusd
          else charged_uusd - granted_uusd - absorbed_uusd end as paid
        from usage_meters
      ) as payments
    ) as fees group by executor_id`,
  'create index usage_meters_open on usage_meters (executor_id) where ended_at is null',
];
