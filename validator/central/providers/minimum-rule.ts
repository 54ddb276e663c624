/** When a node may be rented in parts (marketplace reference 1.11). Pure. */
import { ApiError } from '#shared/runtime/errors.ts';
import type { ExecutorEntry } from '../market/executors/executor.service.ts';

type Splittable = Pick<ExecutorEntry, 'gpu_count' | 'can_split'>;

/**
 * Throws 400 for a minimum beyond the node, and for one that would split a node which cannot be: GPUs reach
 * containers one by one, and each pod is held to its share of the disk.
 */
export function requireMinimum({ gpu_count: total, can_split }: Splittable, minimum: number): void {
  if (minimum > total) {
    throw new ApiError('bad_request', `The node has ${total} GPUs`, {
      hint: `Give a minimum of 1 to ${total}.`,
    });
  }
  if (minimum === total || can_split === 1) return;
  if (can_split === null) {
    throw new ApiError('gpu_split_not_allowed', 'Whether the node can be split is not known yet', {
      hint: 'Wait for its first check.',
    });
  }
  throw new ApiError('gpu_split_not_allowed', 'The node cannot be split between renters', {
    hint: 'Set up the GPU runtime and disk limits of pods; `npm run agent -- doctor` names what is missing.',
  });
}

/** Throws 400 while a pod has a part of the node. */
export function requireNoPart(
  { gpu_count: total }: Pick<ExecutorEntry, 'gpu_count'>,
  pods: readonly { gpu_count: number }[],
): void {
  const parts = pods.filter((pod) => pod.gpu_count < total).length;
  if (parts === 0) return;
  throw new ApiError('bad_request', `${parts} pods have a part of this node`, {
    hint: 'Clear the minimum when they have ended.',
  });
}
