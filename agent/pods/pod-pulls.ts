/** Progress of each pod's current pull and result of its last one. In memory only. */
import { MAX_WAIT_MS } from '#shared/api/agent/bounds.ts';
import type { FinishedPull, PullProgress } from '#shared/api/agent/images.ts';
import type { Clock } from '#shared/runtime/clock.ts';

type Pull = { startMs: number; startBytes: number; progress: PullProgress };

export type PodPulls = ReturnType<typeof createPodPulls>;

export function createPodPulls(deps: {
  clock: Clock;
  livePods(): readonly string[];
  /** Called after a complete pull with the number of bytes received. */
  onPulled?(bytes: number): void;
}) {
  const { clock } = deps;
  const present = new Map<string, Pull>();
  const finished = new Map<string, FinishedPull>();

  function end(podId: string): void {
    const pull = present.get(podId);
    present.delete(podId);
    const done = pull === undefined ? null : resultOf(pull);
    if (done === null) return;
    deps.onPulled?.(done.bytes);
    const live = new Set(deps.livePods());
    for (const id of finished.keys()) if (!live.has(id)) finished.delete(id);
    finished.set(podId, done);
  }

  /** Result of a pull; null if it was aborted or received no bytes. */
  function resultOf({ startMs, startBytes, progress }: Pull): FinishedPull | null {
    const { layers, layers_done, layers_total, bytes_done, bytes_total } = progress;
    if (layers_done < layers_total || bytes_done <= startBytes) return null;
    return {
      finished_ms: clock.now(),
      took_ms: Math.min(MAX_WAIT_MS, Math.round(clock.monotonicMs() - startMs)),
      bytes: bytes_done - startBytes,
      image_bytes: bytes_total,
      is_whole: layers.length === layers_total && layers.every((layer) => layer.bytes_total > 0),
    };
  }

  return {
    /** Records progress; null ends the pull, whether it succeeded or failed. */
    note(podId: string, progress: PullProgress | null): void {
      if (progress === null) {
        end(podId);
        return;
      }
      const before = present.get(podId);
      // A pull without layers still waits for a free slot or for the registry.
      const hasBegun = before !== undefined && before.progress.layers_total > 0;
      const start = hasBegun
        ? before
        : { startMs: clock.monotonicMs(), startBytes: progress.bytes_done };
      present.set(podId, { ...start, progress });
    },
    presentOf: (podId: string): PullProgress | null => present.get(podId)?.progress ?? null,
    lastOf: (podId: string): FinishedPull | null => finished.get(podId) ?? null,
  };
}
