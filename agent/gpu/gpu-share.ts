/** Which part of its GPUs a host rents out: the provider's rule, whoever signed the request. Pure. */
import { ApiError } from '#shared/runtime/errors.ts';

export const GPU_SPLITS = ['any', 'whole'] as const;

export type GpuShareRule = {
  /** `whole`: all GPUs of the host that can be had go to one pod. */
  split: (typeof GPU_SPLITS)[number];
  /** GPUs that a pod has at least; 0 takes pods without any too. */
  minimum: number;
};

export type GpuShare = ReturnType<typeof createGpuShare>;

export function createGpuShare({ split, minimum }: GpuShareRule) {
  return {
    /** Every count will do. */
    isOpen: split === 'any' && minimum === 0,
    /** `offered`: the GPUs that the pod could have. Throws gpu_split_not_allowed or gpu_count_invalid. */
    check(count: number, offered: number): void {
      if (split === 'whole' && count !== offered) {
        const message = `This host is rented whole only: ${offered} GPUs, ${count} were named`;
        throw new ApiError('gpu_split_not_allowed', message);
      }
      if (count < minimum) {
        const message = `This host rents ${minimum} GPUs or more, ${count} were named`;
        throw new ApiError('gpu_count_invalid', message);
      }
    },
  };
}
