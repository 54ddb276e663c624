import { expect, it } from 'vitest';
import { createNetworkSums, type NetworkFacts } from './network-sums.ts';

const KEPT_MS = 1_000;
const IMAGE = 'ubuntu:24.04';

function checked(reached: number, state: 'pullable' | 'missing' | 'unknown'): NetworkFacts {
  return {
    ports: {
      asked: 10,
      opened: 10,
      reached,
      problem: null,
      refused: false,
      others: null,
      repeated: false,
    },
    egress: {
      registry: state === 'pullable' ? 'answers' : 'unreachable',
      problem: '',
      others: null,
      repeated: false,
    },
    templates: { images: [{ image: IMAGE, state, problem: '' }], unavailable: [], repeated: false },
    unanswered: [],
  };
}

const GOOD = checked(10, 'pullable');
const BAD = checked(0, 'missing');

it('compares a host with the latest results of the others only', () => {
  const sums = createNetworkSums(KEPT_MS);
  expect(sums.compared(GOOD, 'a', 0).ports?.others).toEqual({ tried: 0, reached: 0 });
  sums.set('a', { atMs: 0, facts: GOOD });
  sums.set('b', { atMs: 0, facts: BAD });
  sums.set('c', { atMs: 0, facts: BAD });
  const ofA = sums.compared(GOOD, 'a', 0);
  expect(ofA.ports?.others).toEqual({ tried: 2, reached: 0 });
  expect(ofA.egress?.others).toEqual({ tried: 2, reached: 0 });
  expect(ofA.templates?.unavailable).toEqual([IMAGE]);
  const ofB = sums.compared(BAD, 'b', 0);
  expect(ofB.ports?.others).toEqual({ tried: 2, reached: 1 });
  // Half of the others can pull the image.
  expect(ofB.templates?.unavailable).toEqual([]);
  sums.set('c', { atMs: 1, facts: GOOD });
  expect(sums.compared(GOOD, 'a', 1).ports?.others).toEqual({ tried: 2, reached: 1 });
});

it('counts an image twice that a host reports twice, and no image in an unknown state', () => {
  const sums = createNetworkSums(KEPT_MS);
  const twice = checked(10, 'missing');
  twice.templates?.images.push({ image: IMAGE, state: 'missing', problem: '' });
  sums.set('a', { atMs: 0, facts: twice });
  sums.set('b', { atMs: 0, facts: GOOD });
  expect(sums.compared(twice, 'a', 0).templates?.unavailable).toEqual([]);
  expect(sums.compared(GOOD, 'b', 0).templates?.unavailable).toEqual([IMAGE]);
  sums.set('a', { atMs: 0, facts: checked(10, 'unknown') });
  expect(sums.compared(GOOD, 'b', 0).templates?.unavailable).toEqual([]);
});

it('drops old results and those of removed hosts', () => {
  const sums = createNetworkSums(KEPT_MS);
  sums.set('a', { atMs: 0, facts: BAD });
  sums.set('b', { atMs: 500, facts: BAD });
  sums.set('c', { atMs: 500, facts: GOOD });
  sums.retain(new Set(['a', 'b']));
  expect(sums.latest('c')).toBeUndefined();
  expect(sums.compared(GOOD, 'd', 1_000).ports?.others).toEqual({ tried: 2, reached: 0 });
  expect(sums.compared(GOOD, 'd', 1_001).ports?.others).toEqual({ tried: 1, reached: 0 });
  expect(sums.latest('a')).toBeUndefined();
});
