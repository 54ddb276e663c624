/** Tables of the history of metrics. */

/** Two rows per pod or node. */
export type MetricHistoryTable = {
  /** Id of the pod or executor. */
  owner_id: string;
  /** 0: recent rows of all resolutions; 1: archive of older rows of 10 minutes. */
  part: 0 | 1;
  /** Day of the newest sample, counted from the epoch. Changes at most once a day, unlike the data. */
  newest_day: number;
  data: Uint8Array;
};

/** One row per executor whose samples are collected. */
export type MetricCollectionsTable = {
  executor_id: string;
  /** Time of the next collection. A process claims the executor by postponing it. */
  due_at: number;
  /** Consecutive collections without an answer. */
  failures: number;
  /** Run of the agent that the last samples are from, and their last tick; null before the first. */
  epoch: string | null;
  tick: number | null;
  /** Number of the 10-second interval since the epoch in which tick 0 of that run was. */
  shift: number | null;
};

export type MetricTables = {
  metric_history: MetricHistoryTable;
  metric_collections: MetricCollectionsTable;
};
