/** Which GPU counts a node rents (marketplace reference 1.11). Pure. */
import { ApiError } from '#shared/errors.ts';

export type GpuOffer = {
  total: number;
  free: number;
  /** Null: the whole node only. */
  minimum: number | null;
  canSplit: boolean;
};

/** The count to rent; throws the refusal of the first matching row. `requested` null means all of them. */
export function chooseGpuCount(requested: number | null, offer: GpuOffer): number {
  const { total, free, minimum, canSplit } = offer;
  const count = requested ?? total;
  if (count > total) {
    throw new ApiError('gpu_count_invalid', `The node has ${total} GPUs, ${count} were requested`);
  }
  if (free === 0) throw new ApiError('node_unavailable', 'Every GPU of the node is rented');
  if (count < total && !canSplit) {
    throw new ApiError('gpu_split_not_allowed', 'The node cannot be split between renters');
  }
  if (count < total && minimum === null) {
    throw new ApiError('gpu_count_invalid', `The node is rented whole only, all ${total} GPUs`);
  }
  if (minimum !== null && count < minimum) {
    throw new ApiError('gpu_count_invalid', `The node rents ${minimum} GPUs or more`);
  }
  if (count > free) {
    throw new ApiError(
      'gpu_count_invalid',
      `${free} GPUs of the node are free, ${count} were requested`,
      {
        hint: `Request ${free} GPUs or fewer, or choose another node.`,
      },
    );
  }
  return count;
}
