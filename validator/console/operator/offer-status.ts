/** Status of a node's offer in the fleet. Pure. */
import type { FleetPage } from '../api/api.gen.ts';
import { formatCount } from '../parts/format.ts';
import type { Tone } from '../parts/tone.ts';

export type Offer = FleetPage['nodes'][number]['offer'];

/** Returns the name and the tone. A node whose GPUs are all rented needs no attention. */
export function offerStatus(offer: Offer, freeGpus: number): { name: string; tone: Tone } {
  if (offer === 'rentable') return { name: offer, tone: 'good' };
  const isRented = offer === 'node_unavailable' && freeGpus === 0;
  return isRented ? { name: 'Fully rented', tone: 'good' } : { name: offer, tone: 'warn' };
}

/** Returns for example `1 node with 2 GPUs. 1 GPU is free.` */
export function fleetText(nodes: number, gpus: number, freeGpus: number): string {
  const all = `${formatCount(nodes, 'node')} with ${formatCount(gpus, 'GPU')}.`;
  return `${all} ${formatCount(freeGpus, 'GPU')} ${freeGpus === 1 ? 'is' : 'are'} free.`;
}
