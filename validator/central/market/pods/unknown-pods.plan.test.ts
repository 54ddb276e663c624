import { expect, it } from 'vitest';
import type { PodView } from '#shared/api/agent/pod.ts';
import {
  type KnownPod,
  MAX_UNKNOWN,
  type UnknownKind,
  unknownAmong,
  unknownKindOf,
} from './unknown-pods.plan.ts';

const NODE = 'node';
const ROW: KnownPod = {
  id: 'pod',
  executor_id: NODE,
  generation: 3,
  acknowledged_generation: 3,
  delete_requested_at: null,
  ended_at: null,
};
/** The members of a view that the decision reads. */
const view = (change: Partial<PodView> = {}) =>
  ({
    id: 'pod',
    desired: 'running',
    generation: 3,
    remove_after_seconds: null,
    image: { reference: 'own/image', digest: null },
    gpu_uuids: ['GPU-1'],
    created_ms: 7,
    ...change,
  }) as PodView;

it.each<[string, Partial<PodView>, Partial<KnownPod> | null, UnknownKind | null]>([
  ['a pod that the database has', {}, {}, null],
  ['a pod that the database does not have', {}, null, 'missing'],
  ['a pod that the database has on another node', {}, { executor_id: 'other' }, 'missing'],
  ['a newer generation', { generation: 4 }, {}, 'newer'],
  ['a generation that the database has not sent yet', { generation: 2 }, {}, null],
  [
    'a generation that was accepted and then reverted',
    { generation: 4 },
    { acknowledged_generation: 4 },
    null,
  ],
  [
    'a pod that is deleted, whatever its generation',
    { generation: 9 },
    { delete_requested_at: 1 },
    null,
  ],
  ['a pod that has ended', { generation: 9 }, { ended_at: 1 }, null],
  ['a missing pod that the node removes', { desired: 'removed' }, null, null],
  ['the pod of a rental probe', { remove_after_seconds: 600 }, null, null],
])('judges %s', (_, shown, row, kind) => {
  expect(unknownKindOf(view(shown), NODE, row === null ? undefined : { ...ROW, ...row })).toBe(
    kind,
  );
});

it('returns what a node reports about its unknown pods, and limits their number', () => {
  const many = Array.from({ length: MAX_UNKNOWN + 5 }, (_, n) => view({ id: `pod-${n}` }));
  const found = unknownAmong([view(), ...many], NODE, new Map([['pod', ROW]]));
  expect(found).toHaveLength(MAX_UNKNOWN);
  expect(found[0]).toEqual({
    executor_id: NODE,
    pod_id: 'pod-0',
    kind: 'missing',
    generation: 3,
    image: 'own/image',
    gpu_count: 1,
    created_at: 7,
  });
});
