/** Test rental of a reported node: the rental probe of an inspection that is made for the report. */
import type { RentalProbes } from '../rental-probe/rental-probe.service.ts';
import type { RentNode } from './report.service.ts';

export type RentNodeDeps = {
  rentals: Pick<RentalProbes, 'last'>;
  /** Inspects the executor now; a free host gets a rental probe. */
  recheck(executorId: string): Promise<unknown>;
};

export function createRentNode({ rentals, recheck }: RentNodeDeps): RentNode {
  return async ({ id, rented }, sinceMs) => {
    const lastSince = async () => {
      const last = await rentals.last(id);
      return last !== null && last.at_ms >= sinceMs ? last : null;
    };
    const last = await lastSince();
    if (last !== null && last.status !== 'not_run') return last;
    if (rented) return null;
    await recheck(id);
    return lastSince();
  };
}
