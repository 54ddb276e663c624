/** The runtime that money must be there for when a pod begins (specification, Authentication 8). Pure. */
import { costMicroCeil } from '#shared/api/money.ts';

/** Running pods keep as much of the money when something else wants it. */
export const FLOOR_MS = 900_000;

/** What must be available to rent `gpus` at this price: 15 minutes, rounded up. Micro-dollars. */
export function rentalFloor(priceUusdPerGpuHour: number, gpus: number): number {
  return costMicroCeil(priceUusdPerGpuHour, gpus, FLOOR_MS);
}
