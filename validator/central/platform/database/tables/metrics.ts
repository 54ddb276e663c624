/** Tables of the history of metrics. */

/** Two rows per pod or node. */
export type MetricHistoryTable = {
  /** Id of the pod or executor. */
  owner_id: string;
  /** 0 for recent rows of all resolutions; 1 for the archive of older rows with intervals of 10 minutes. */
  part: 0 | 1;
  /** Day of the newest sample, counted from the epoch. Unlike the data, it changes at most once a day. */
  newest_day: number;
  data: Uint8Array;
};

/** One row per executor whose samples are collected. */
export type MetricCollectionsTable = {
  executor_id: string;
  /** Time of the next collection. A process claims the executor by postponing it. */
  due_at: number;
  /** Number of consecutive collections without a response. */
  failures: number;
  /**
   * Id of the agent process from which the last samples were received, and their last tick; null before the first
   * samples.
   */
  epoch: string | null;
  tick: number | null;
  /** Number of the 10-second interval, counted from the epoch, that contains tick 0 of that process. */
  shift: number | null;
};

export type MetricTables = {
  metric_history: MetricHistoryTable;
  metric_collections: MetricCollectionsTable;
};
