/** Reads the progress stream of a pull: sums the layers, and finds the errors that hide in it. */
import { z } from 'zod';
import type { PullProgress } from '#shared/agent-api/pod.ts';
import { toPullError } from './engine-errors.ts';

/** A pull that sends nothing for this long has stalled. */
export const PULL_IDLE_MS = 120_000;

/** One record of the engine's stream; a failed pull is a 200 whose last record holds the error. */
export const PullRecord = z.object({
  id: z.string().optional(),
  status: z.string().optional(),
  error: z.string().optional(),
  errorDetail: z.object({ message: z.string().default('') }).optional(),
  progressDetail: z
    .object({ current: z.number().optional(), total: z.number().optional() })
    .optional(),
});
export type PullRecord = z.output<typeof PullRecord>;

type Layer = { done: number; total: number; complete: boolean };

const LAYER_STARTED = /^(Pulling fs layer|Waiting|Downloading|Verifying Checksum)$/;
const LAYER_DOWNLOADED = /^(Download complete|Extracting)$/;
const LAYER_COMPLETE = /^(Pull complete|Already exists)$/;

/** Feeds `onProgress` with the sum after every record that changes it; throws on an error record. */
export async function followPull(
  records: AsyncIterable<PullRecord>,
  onProgress: (progress: PullProgress) => void,
): Promise<void> {
  const layers = new Map<string, Layer>();
  for await (const record of records) {
    const failure = record.errorDetail?.message ?? record.error;
    if (failure !== undefined) throw toPullError(failure);
    if (applyRecord(layers, record)) onProgress(sum(layers));
  }
}

function applyRecord(layers: Map<string, Layer>, record: PullRecord): boolean {
  const { id, status = '', progressDetail } = record;
  if (id === undefined) return false;
  const known = LAYER_STARTED.test(status) || LAYER_DOWNLOADED.test(status);
  if (!known && !LAYER_COMPLETE.test(status)) return false;
  const layer = layers.get(id) ?? { done: 0, total: 0, complete: false };
  if (status === 'Downloading') {
    layer.total = progressDetail?.total ?? layer.total;
    layer.done = progressDetail?.current ?? layer.done;
  } else if (!LAYER_STARTED.test(status)) {
    layer.done = layer.total;
    layer.complete = LAYER_COMPLETE.test(status);
  }
  layers.set(id, layer);
  return true;
}

function sum(layers: Map<string, Layer>): PullProgress {
  const all = [...layers.values()];
  return {
    layers_done: all.filter((layer) => layer.complete).length,
    layers_total: all.length,
    bytes_done: all.reduce((bytes, layer) => bytes + layer.done, 0),
    bytes_total: all.reduce((bytes, layer) => bytes + layer.total, 0),
  };
}
