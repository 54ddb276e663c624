/** Checks the number of GPUs that a rental requests. Pure. */
import { ApiError, type ErrorCode } from '#shared/runtime/errors.ts';

export type GpuOffer = {
  total: number;
  free: number;
  /** Smallest number of GPUs per rental; null if the node is rented only as a whole. */
  minimum: number | null;
  canSplit: boolean;
  /** True if a pod of the node is being created. */
  isLaunching: boolean;
};

export type GpuRefusal = { code: ErrorCode; message: string; hint?: string };

/** Returns the number of GPUs to rent; null requests all. Throws the first refusal. */
export function chooseGpuCount(requested: number | null, offer: GpuOffer): number {
  const count = requested ?? offer.total;
  const refusal = refusalOf(count, offer);
  if (refusal === null) return count;
  const { code, message, hint } = refusal;
  throw new ApiError(code, message, hint === undefined ? {} : { hint });
}

/** Returns true for a count that can be rented now. */
export function canRent(count: number, { total, free, minimum, canSplit }: GpuOffer): boolean {
  if (count > free || count > total || free === 0) return false;
  if (minimum !== null && count < minimum) return false;
  return count === total || (canSplit && minimum !== null);
}

/** Returns null for a count that can be rented now. */
export function refusalOf(count: number, offer: GpuOffer): GpuRefusal | null {
  const { total, free, minimum, canSplit, isLaunching } = offer;
  if (canRent(count, offer)) return null;
  if (count > total) {
    const message = `The node has ${total} GPUs, ${count} were requested`;
    return { code: 'gpu_count_invalid', message };
  }
  if (free === 0) {
    return isLaunching
      ? { code: 'node_rent_in_progress', message: 'Another rental is starting on the node' }
      : { code: 'node_unavailable', message: 'Every GPU of the node is rented' };
  }
  if (count < total && !canSplit) {
    const message = 'The node cannot be split between renters';
    return { code: 'gpu_split_not_allowed', message };
  }
  if (count < total && minimum === null) {
    const message = `The node is rented only as a whole, with all ${total} GPUs`;
    return { code: 'gpu_count_invalid', message };
  }
  if (minimum !== null && count < minimum) {
    return {
      code: 'gpu_count_invalid',
      message: `Rentals of the node require at least ${minimum} GPUs`,
    };
  }
  return {
    code: 'gpu_count_invalid',
    message: `${free} GPUs of the node are free, ${count} were requested`,
    hint: `Request ${free} GPUs or fewer, or choose another node.`,
  };
}
