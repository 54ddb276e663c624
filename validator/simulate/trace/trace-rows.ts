/** Hosts and jobs of a cluster trace, in the form that all trace formats are parsed to. Pure. */

export type TraceHost = {
  /** Model as the trace names it. */
  model: string;
  gpus: number;
};

export type TraceJob = {
  /** Model as the trace names it; null for any. */
  model: string | null;
  /** Number of whole GPUs. */
  gpus: number;
  /** Number of equal rentals that the job needs at once. */
  rentals: number;
  /** Seconds; only differences between jobs have a meaning. */
  submittedS: number;
  durationS: number;
};

/** A row of a trace; null for a row that the marketplace has no use for, such as a job without GPUs. */
export type TraceRow = { host: TraceHost } | { job: TraceJob } | null;

/** Position in a file, for errors. */
export type Position = { file: string; line: number };

/** An invalid value: `column` is its name in the file. */
export class TraceError extends Error {
  override name = 'TraceError';
  constructor({ file, line }: Position, column: string, problem: string) {
    super(`${file}:${line}: ${column}: ${problem}`);
  }
}
