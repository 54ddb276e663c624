/** Keeps pods in the list of live pods until the list of deleted pods can have them. Pure. */
import type { PodListItemResponse } from '../api/api.gen.ts';

type Pods = readonly PodListItemResponse[];

/** Rows of the list, followed by those of `before` that are in neither list. The latter are deleted. */
export function withLeaving(
  rows: Pods,
  before: Pods,
  deleted: readonly { id: string }[],
): PodListItemResponse[] {
  const ids = new Set([...rows, ...deleted].map(({ id }) => id));
  const left = before.filter(({ id }) => !ids.has(id));
  return [...rows, ...left.map((pod) => ({ ...pod, status: 'DELETED' as const, phase: null }))];
}

/** Ids of the pods as one text, which changes when a pod arrives or leaves. */
export function idsOf(pods: Pods | undefined): string {
  // A malformed answer is shown by its panel.
  return Array.isArray(pods) ? pods.map(({ id }) => id).join() : '';
}
