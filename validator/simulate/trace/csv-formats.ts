/** Rows of the public traces that are CSV files: Alibaba gpu-v2023, Alibaba v2026 spot, and the hosts of Philly. Pure. */
import { z } from 'zod';
import { type Position, TraceError, type TraceRow } from './trace-rows.ts';

export type CsvFormat = {
  name: string;
  /** Columns that identify the format and are required. */
  columns: readonly string[];
  rowOf(values: Readonly<Record<string, string>>, at: Position): TraceRow;
};

const MAX_TIME_S = 1e11;
/** Most GPUs that one rental can have. */
const MAX_GPUS = 16;
const Empty = ['', 'nan', 'NaN', 'None', 'NULL'];

/** An empty cell has no value. */
const Amount = z.string().transform((text, context): number | null => {
  if (Empty.includes(text)) return null;
  const amount = Number(text);
  if (amount >= 0 && amount <= MAX_TIME_S) return amount;
  context.addIssue({ code: 'custom', message: 'must be a number that is not negative' });
  return z.NEVER;
});
const Model = z
  .string()
  .max(200, 'is longer than 200 characters')
  .transform((text) => (Empty.includes(text) ? null : text));
const Decimal = z.coerce.number('must be a number').min(0, 'must not be negative').max(1e6);
const Whole = z.coerce.number('must be a number').int('must be a whole number').min(0).max(1e6);

const Node2023 = z.object({ gpu: Whole, model: Model });
const Pod2023 = z.object({
  num_gpu: Whole,
  gpu_spec: Model,
  creation_time: Amount,
  deletion_time: Amount,
  scheduled_time: Amount,
});
const Node2026 = z.object({ gpu_model: Model, gpu_capacity_num: Decimal });
const Job2026 = z.object({
  gpu_model: Model,
  gpu_request: Decimal,
  worker_num: Decimal,
  submit_time: Amount,
  duration: Amount,
});
const GPUS_OF_PHILLY = 'number of GPUs';
const MEMORY_OF_PHILLY = 'single GPU mem';
const MachineOfPhilly = z.object({
  [GPUS_OF_PHILLY]: Whole,
  [MEMORY_OF_PHILLY]: z.string().regex(/^\d{1,3} ?GB$/i, 'must be a size such as 24GB'),
});

export const CSV_FORMATS: readonly CsvFormat[] = [
  {
    name: 'hosts of Alibaba gpu-v2023',
    columns: ['sn', 'gpu', 'model'],
    rowOf(values, at) {
      const { gpu, model } = parsed(Node2023, values, at);
      return hostOf(gpu, model, at, 'model');
    },
  },
  {
    name: 'pods of Alibaba gpu-v2023',
    columns: Object.keys(Pod2023.shape),
    rowOf(values, at) {
      const pod = parsed(Pod2023, values, at);
      const { creation_time: created, scheduled_time: began, deletion_time: ended } = pod;
      // A pod that was never scheduled has no duration, and a later start of the trace would be a guess.
      if (created === null || began === null || ended === null) return null;
      // A pod that can run on several models is imported with the first.
      const model = pod.gpu_spec?.split('|', 1)[0] ?? null;
      return jobOf({ model, gpus: pod.num_gpu, rentals: 1, created, durationS: ended - began });
    },
  },
  {
    name: 'hosts of Alibaba v2026 spot',
    columns: Object.keys(Node2026.shape),
    rowOf(values, at) {
      const { gpu_model: model, gpu_capacity_num: gpus } = parsed(Node2026, values, at);
      return hostOf(gpus, model, at, 'gpu_model');
    },
  },
  {
    name: 'jobs of Alibaba v2026 spot',
    columns: Object.keys(Job2026.shape),
    rowOf(values, at) {
      const job = parsed(Job2026, values, at);
      const { gpu_model: model, submit_time: created, duration } = job;
      if (created === null || duration === null) return null;
      const rentals = Math.round(job.worker_num);
      return jobOf({ model, gpus: job.gpu_request, rentals, created, durationS: duration });
    },
  },
  {
    name: 'hosts of Philly',
    columns: Object.keys(MachineOfPhilly.shape),
    rowOf(values, at) {
      const machine = parsed(MachineOfPhilly, values, at);
      const memory = machine[MEMORY_OF_PHILLY].replace(' ', '').toUpperCase();
      return hostOf(machine[GPUS_OF_PHILLY], memory, at, MEMORY_OF_PHILLY);
    },
  },
];

function parsed<Schema extends z.ZodType>(
  schema: Schema,
  values: Readonly<Record<string, string>>,
  at: Position,
): z.output<Schema> {
  const result = schema.safeParse(values);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const column = String(issue?.path[0] ?? '');
  throw new TraceError(at, column, `${JSON.stringify(values[column])} ${issue?.message ?? ''}`);
}

function hostOf(gpus: number, model: string | null, at: Position, column: string): TraceRow {
  if (gpus === 0) return null;
  if (!isCount(gpus)) {
    throw new TraceError(at, 'GPUs', `${gpus} is not a whole number from 1 to ${MAX_GPUS}`);
  }
  if (model === null) throw new TraceError(at, column, 'a host with GPUs has no model');
  return { host: { model, gpus } };
}

const isCount = (gpus: number): boolean => gpus % 1 === 0 && gpus <= MAX_GPUS;

/** Parts of a GPU are rounded up, because the marketplace rents whole ones. `gpus`: of each rental. */
export function jobOf(job: {
  model: string | null;
  gpus: number;
  rentals: number;
  created: number;
  durationS: number;
}): TraceRow {
  const { model, rentals, created: submittedS, durationS } = job;
  const gpus = Math.min(Math.ceil(job.gpus), MAX_GPUS);
  if (gpus === 0 || rentals === 0 || durationS <= 0) return null;
  return { job: { model, gpus, rentals, submittedS, durationS } };
}
