/** What is to happen at a time. */

/** One row per kind and subject that is still to happen (schedule/schedule.ts). */
export type DueWorkTable = {
  kind: string;
  /** An id, or a word for what there is only one of. */
  subject: string;
  /** The instant that it counts from, however late it happens. */
  due_at: number;
  /** Not before this: `due_at`, or later after a failure. */
  look_at: number;
  /** Failures since it was set. */
  attempts: number;
  last_error: string | null;
};

export type ScheduleTables = { due_work: DueWorkTable };
