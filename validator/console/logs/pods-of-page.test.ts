import { expect, it } from 'vitest';
import { addPod, MAX_PODS, namesOf, podIdsIn } from './pods-of-page.ts';

it('reads the pods of an address, and adds one', () => {
  expect(podIdsIn('')).toEqual([]);
  expect(podIdsIn('a,,b,a')).toEqual(['a', 'b']);
  expect(addPod(['a'], 'b')).toEqual(['a', 'b']);
  expect(addPod(['a'], '')).toEqual(['a']);
});

it('shows a limited number of pods', () => {
  expect(podIdsIn(Array.from({ length: 20 }, (_, at) => at).join())).toHaveLength(MAX_PODS);
});

it('distinguishes pods with the same name', () => {
  const known = [
    { id: '11111111-a', pod_name: 'one' },
    { id: '22222222-b', pod_name: 'two' },
    { id: '33333333-c', pod_name: 'one' },
  ];
  const ids = ['33333333-c', '22222222-b', '11111111-a', 'unknown'];
  expect(namesOf(ids, known).map(({ name }) => name)).toEqual([
    'one (33333333)',
    'two',
    'one (11111111)',
    'unknown',
  ]);
});
