import { expect, it } from 'vitest';
import { fleetText, offerStatus } from './offer-status.ts';

it('shows a fully rented node without a warning', () => {
  expect(offerStatus('node_unavailable', 0)).toEqual({ name: 'Fully rented', tone: 'good' });
  expect(offerStatus('node_unavailable', 1).tone).toBe('warn');
  expect(offerStatus('node_not_verified', 0).tone).toBe('warn');
  expect(offerStatus('rentable', 2).tone).toBe('good');
});

it.each([
  [1, 2, 1, '1 node with 2 GPUs. 1 GPU is free.'],
  [3, 1, 0, '3 nodes with 1 GPU. 0 GPUs are free.'],
])('counts %d nodes, %d GPUs and %d free ones', (nodes, gpus, free, text) => {
  expect(fleetText(nodes, gpus, free)).toBe(text);
});
