/** Reads the progress stream of a pull: progress per layer, speed, and errors. */
import { z } from 'zod';
import { MAX_BYTES, MAX_WAIT_SECONDS } from '#shared/api/agent/bounds.ts';
import { type LayerProgress, MAX_LAYERS, type PullProgress } from '#shared/api/agent/images.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { EngineError } from './engine.ts';
import { toPullError } from './engine-errors.ts';
import { withIdleLimit } from './engine-stream.ts';

/** Time without progress after which a pull counts as stalled. */
export const PULL_IDLE_MS = 120_000;
/** Time during which every pull may be slow. Afterwards a pull continues only while enough bytes arrive. */
export const PULL_BASE_MS = 600_000;
/** Minimum number of bytes per minute, downloaded or unpacked, for a pull to continue. */
const SLOWEST_BYTES_PER_MINUTE = 1_000_000;
const MINUTE_MS = 60_000;
/**
 * Shortest time limit of a pull. The limit of a large image is longer: PULL_BASE_MS plus one second per MiB.
 */
export const PULL_LONGEST_MS = 7_200_000;
const USUAL_BYTES_PER_SECOND = 1024 * 1024;
const MS_PER_SECOND = 1_000;

/** One record of the engine's stream. A failed pull has status 200 and an error in its last record. */
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

const STATES: readonly [RegExp, LayerProgress['state']][] = [
  [/^(Pulling fs layer|Waiting)$/, 'waiting'],
  [/^Downloading$/, 'downloading'],
  [/^(Verifying Checksum|Download complete)$/, 'downloaded'],
  [/^Extracting$/, 'extracting'],
  [/^(Pull complete|Already exists)$/, 'done'],
];
/** Start of the last record of a successful pull. */
const SUCCESS = /^Status: /;

/** Returns the time limit of a pull of `bytes` in milliseconds. */
export function pullBudgetMs(bytes: number): number {
  const usualMs = PULL_BASE_MS + (bytes / USUAL_BYTES_PER_SECOND) * MS_PER_SECOND;
  return Math.max(PULL_LONGEST_MS, usualMs);
}

/**
 * Calls `onProgress` for every progress record until the engine reports success. Throws on an error record,
 * `image_stalled` without progress, and `deadline` if the pull exceeds its deadline or becomes too slow.
 */
export async function followPull(
  records: AsyncIterable<PullRecord>,
  clock: Clock,
  onProgress: (progress: PullProgress) => void,
): Promise<void> {
  const startedMs = clock.monotonicMs();
  const isSlow = createPace(clock);
  const steps = withIdleLimit(stepsForward(records, clock), clock, PULL_IDLE_MS);
  for await (const progress of steps) {
    onProgress(progress);
    const tookMs = clock.monotonicMs() - startedMs;
    const slow = isSlow(progress) && tookMs > PULL_BASE_MS;
    if (!slow && tookMs <= pullBudgetMs(progress.bytes_total)) continue;
    const minutes = Math.round(tookMs / MINUTE_MS);
    const pace = slow ? ', and less than 1 MB per minute arrives' : '';
    throw new EngineError('deadline', `the pull is not done after ${minutes} minutes${pace}`);
  }
}

/**
 * Returns a function that returns true if too few bytes arrived in the last minute. Call it for every progress record:
 * the engine reports half a megabyte at a time, so the minute begins and ends with such a report.
 */
function createPace(clock: Clock): (progress: PullProgress) => boolean {
  const samples: { atMs: number; bytes: number }[] = [];
  let known = 0;
  return ({ bytes_done, bytes_extracted }) => {
    const now = { atMs: clock.monotonicMs(), bytes: bytes_done + bytes_extracted };
    // Ignores records that change only the state of a layer.
    if (now.bytes <= known) return false;
    known = now.bytes;
    if (now.atMs - (samples.at(-1)?.atMs ?? -Infinity) >= PACE_SAMPLE_MS) samples.push(now);
    while (now.atMs - (samples[1]?.atMs ?? Infinity) >= MINUTE_MS) samples.shift();
    const from = samples[0] ?? now;
    const elapsedMs = now.atMs - from.atMs;
    const arrived = now.bytes - from.bytes;
    return elapsedMs >= MINUTE_MS && arrived * MINUTE_MS < SLOWEST_BYTES_PER_MINUTE * elapsedMs;
  };
}

/** Minimum interval between two samples of the byte count, which limits the number of samples. */
const PACE_SAMPLE_MS = 5_000;

/** Skips records without progress, such as a retry's countdown, so that they do not reset the idle limit. */
async function* stepsForward(
  records: AsyncIterable<PullRecord>,
  clock: Clock,
): AsyncGenerator<PullProgress> {
  const layers = new Map<string, LayerProgress>();
  const speed = createSpeed(clock);
  for await (const record of records) {
    failOn(record);
    if (SUCCESS.test(record.status ?? '')) return;
    if (!applyRecord(layers, record)) continue;
    const all = [...layers.values()];
    yield { ...sumOf(all), ...speed.of(all), layers: all.map((layer) => ({ ...layer })) };
  }
  throw new EngineError('image_unreachable', 'the pull ended without a result');
}

/** Throws if the record has an error. */
export function failOn(record: PullRecord): void {
  const failure = record.errorDetail?.message ?? record.error;
  if (failure !== undefined) throw toPullError(failure);
}

/** Returns true if the layer made progress. */
function applyRecord(layers: Map<string, LayerProgress>, record: PullRecord): boolean {
  const { id, status = '', progressDetail } = record;
  const state = STATES.find(([pattern]) => pattern.test(status))?.[1];
  if (id === undefined || state === undefined) return false;
  if (!layers.has(id) && layers.size >= MAX_LAYERS) return false;
  const before = layers.get(id);
  const layer = moved(before ?? freshLayer(id), state, progressDetail);
  layers.set(id, layer);
  return (
    before === undefined ||
    before.state !== layer.state ||
    before.bytes_done < layer.bytes_done ||
    before.bytes_extracted < layer.bytes_extracted
  );
}

function freshLayer(id: string): LayerProgress {
  return { id, state: 'waiting', bytes_done: 0, bytes_total: 0, bytes_extracted: 0 };
}

/**
 * Updates a layer's byte counts, which never decrease: a restarted download counts as progress only beyond its previous
 * count. A layer's size comes from the registry, which is not trusted.
 */
function moved(
  layer: LayerProgress,
  state: LayerProgress['state'],
  detail: PullRecord['progressDetail'],
): LayerProgress {
  const current = Math.floor(detail?.current ?? 0);
  const total = Math.max(layer.bytes_total, Math.min(MAX_BYTES, Math.floor(detail?.total ?? 0)));
  const next = { ...layer, bytes_total: total, state };
  switch (state) {
    case 'waiting':
      return next;
    case 'downloading':
      return { ...next, bytes_done: Math.max(layer.bytes_done, Math.min(current, total)) };
    case 'downloaded':
      return { ...next, bytes_done: total };
    case 'extracting': {
      const extracted = Math.max(layer.bytes_extracted, Math.min(current, total));
      return { ...next, bytes_done: total, bytes_extracted: extracted };
    }
    case 'done':
      return { ...next, bytes_done: total, bytes_extracted: total };
  }
}

function sumOf(layers: readonly LayerProgress[]) {
  const sum = (bytesOf: (layer: LayerProgress) => number) =>
    Math.min(
      MAX_BYTES,
      layers.reduce((bytes, layer) => bytes + bytesOf(layer), 0),
    );
  return {
    layers_done: layers.filter((layer) => layer.state === 'done').length,
    layers_total: layers.length,
    bytes_done: sum((layer) => layer.bytes_done),
    bytes_total: sum((layer) => layer.bytes_total),
    bytes_extracted: sum((layer) => layer.bytes_extracted),
  };
}

const WINDOW_MS = 10_000;
/** Shortest interval over which a speed is computed. */
const SHORTEST_SECONDS = 1;
/** Minimum interval between samples, which limits their number. */
const SAMPLE_MS = 250;

type Sample = { atMs: number; downloaded: number; extracted: number };

/** Computes speed and remaining time over a sliding window. Call for every progress record. */
export function createSpeed(clock: Clock) {
  const samples: Sample[] = [];

  function addSample(now: Sample): Sample {
    const last = samples.at(-1);
    if (last === undefined || now.atMs - last.atMs >= SAMPLE_MS) samples.push(now);
    while (samples.length > 1 && now.atMs - (samples[0]?.atMs ?? 0) > WINDOW_MS) samples.shift();
    return samples[0] ?? now;
  }

  return {
    of(layers: readonly LayerProgress[]): Pick<PullProgress, 'bytes_per_second' | 'eta_seconds'> {
      const now: Sample = { atMs: clock.monotonicMs(), downloaded: 0, extracted: 0 };
      let total = 0;
      for (const layer of layers) {
        now.downloaded += layer.bytes_done;
        now.extracted += layer.bytes_extracted;
        total += layer.bytes_total;
      }
      const from = addSample(now);
      const seconds = (now.atMs - from.atMs) / MS_PER_SECOND;
      const rate = (bytes: number) =>
        seconds >= SHORTEST_SECONDS ? Math.min(MAX_BYTES, Math.round(bytes / seconds)) : 0;
      const downloading = rate(now.downloaded - from.downloaded);
      const extracting = rate(now.extracted - from.extracted);
      return {
        bytes_per_second: downloading,
        eta_seconds: etaOf(total, now, { downloading, extracting }),
      };
    },
  };
}

/** Downloads and extractions overlap, so the slower one determines the remaining time. Null without progress. */
function etaOf(
  total: number,
  { downloaded, extracted }: Sample,
  rates: { downloading: number; extracting: number },
): number | null {
  const toDownload = total - downloaded;
  const toExtract = total - extracted;
  if (toDownload > 0 && rates.downloading === 0) return null;
  // Before the first extraction only the download's remaining time is known.
  if (toDownload === 0 && toExtract > 0 && rates.extracting === 0) return null;
  const download = toDownload > 0 ? toDownload / rates.downloading : 0;
  const extract = toExtract > 0 && rates.extracting > 0 ? toExtract / rates.extracting : 0;
  return Math.min(MAX_WAIT_SECONDS, Math.ceil(Math.max(download, extract)));
}
