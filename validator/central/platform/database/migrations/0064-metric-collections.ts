/** A verdict now adds the entry for a node's first collection, which a periodic job added before. */
import type { SqlDialect } from '../sql-dialects.ts';

export const metricCollections = (_: SqlDialect): string[] => [
  `insert into metric_collections (executor_id, due_at, failures)
    select id, 0, 0 from executors where state <> 'removed' and inventory_json is not null
      and id not in (select executor_id from metric_collections)`,
];
