/**
 * Recognises by a node's report that the database is an old copy: the node runs pods that the database does not have, or
 * has in an older generation. Pure.
 */
import type { PodView } from '#shared/api/agent/pod.ts';
import type { Pod, UnknownPod } from '../../platform/database/tables.ts';

export type UnknownKind = UnknownPod['kind'];

/** Columns of a pod with which its node's report is compared. */
export type KnownPod = Pick<
  Pod,
  | 'id'
  | 'executor_id'
  | 'generation'
  | 'acknowledged_generation'
  | 'delete_requested_at'
  | 'ended_at'
>;

/** Limit of the unknown pods of one node that are recorded. */
export const MAX_UNKNOWN = 200;

/** Message of pods that wait for the decision. */
export const AWAITS_DECISION =
  'The node runs pods that the market does not know. The pod waits until an operator has decided about them';

/**
 * Returns how the node's pod is unknown; null if it is known. `row` is the database's pod with the same id. Pods that
 * are being removed, on the node or in the database, are known, and so are the pods of rental probes, which remove
 * themselves.
 */
export function unknownKindOf(
  view: PodView,
  executorId: string,
  row: KnownPod | undefined,
): UnknownKind | null {
  if (view.desired === 'removed' || view.remove_after_seconds !== null) return null;
  if (row === undefined || row.executor_id !== executorId) return 'missing';
  if (row.delete_requested_at !== null || row.ended_at !== null) return null;
  // The node may have accepted a generation that was reverted in the database.
  const sent = Math.max(row.generation, row.acknowledged_generation);
  return view.generation > sent ? 'newer' : null;
}

/** Returns the rows for the node's unknown pods, at most MAX_UNKNOWN. */
export function unknownAmong(
  views: readonly PodView[],
  executorId: string,
  rows: ReadonlyMap<string, KnownPod>,
): Omit<UnknownPod, 'found_at' | 'remove_requested_at'>[] {
  return views
    .flatMap((view) => {
      const kind = unknownKindOf(view, executorId, rows.get(view.id));
      if (kind === null) return [];
      return {
        executor_id: executorId,
        pod_id: view.id,
        kind,
        generation: view.generation,
        image: view.image.reference,
        gpu_count: view.gpu_uuids.length,
        created_at: view.created_ms,
      };
    })
    .slice(0, MAX_UNKNOWN);
}
