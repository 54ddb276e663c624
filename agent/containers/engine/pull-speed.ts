/** How fast a pull is and how long it will take, from what the last seconds brought. */
import { MAX_BYTES, MAX_WAIT_SECONDS } from '#shared/api/agent/bounds.ts';
import type { LayerProgress, PullProgress } from '#shared/api/agent/images.ts';
import type { Clock } from '#shared/runtime/clock.ts';

const WINDOW_MS = 10_000;
/** Over less than this no speed can be told. */
const SHORTEST_SECONDS = 1;
/** Between two samples; it bounds how many are kept. */
const SAMPLE_MS = 250;
const MS_PER_SECOND = 1_000;

type Sample = { atMs: number; downloaded: number; extracted: number };

/** Asked with every step forward; keeps what it needs of the past. */
export function createSpeed(clock: Clock) {
  const samples: Sample[] = [];

  function note(now: Sample): Sample {
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
      const from = note(now);
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

/** Downloading and extracting overlap, so the slower of the two counts. Null when it does not move. */
function etaOf(
  total: number,
  { downloaded, extracted }: Sample,
  rates: { downloading: number; extracting: number },
): number | null {
  const toDownload = total - downloaded;
  const toExtract = total - extracted;
  if (toDownload > 0 && rates.downloading === 0) return null;
  // Before the first extraction its speed is unknown: the download is what can be told.
  if (toDownload === 0 && toExtract > 0 && rates.extracting === 0) return null;
  const download = toDownload > 0 ? toDownload / rates.downloading : 0;
  const extract = toExtract > 0 && rates.extracting > 0 ? toExtract / rates.extracting : 0;
  return Math.min(MAX_WAIT_SECONDS, Math.ceil(Math.max(download, extract)));
}
