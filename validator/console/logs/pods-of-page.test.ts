import { expect, it } from 'vitest';
import { addPod, MAX_PODS, podIdsIn } from './pods-of-page.ts';

it('reads the pods of an address, and adds one', () => {
  expect(podIdsIn('')).toEqual([]);
  expect(podIdsIn('a,,b,a')).toEqual(['a', 'b']);
  expect(addPod(['a'], 'b')).toEqual(['a', 'b']);
  expect(addPod(['a'], '')).toEqual(['a']);
});

it('shows a limited number of pods', () => {
  expect(podIdsIn(Array.from({ length: 20 }, (_, at) => at).join())).toHaveLength(MAX_PODS);
});
