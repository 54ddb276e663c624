import { expect, it } from 'vitest';
import { LABELS } from '../containers/engine/engine.ts';
import { createLostPods } from './probation.ts';

const MARK = { id: 'pod', container_id: 'container', generation: 2 };
const ROW = { id: 'pod', desired: 'running', generation: 2, staged_json: null } as const;
const OURS = { [LABELS.executor]: 'executor', [LABELS.pod]: 'pod' };

function lostOf(labels: Record<string, string> | null, row: object | null) {
  const container = { status: 'exited', labels: labels ?? {} };
  const lostPods = createLostPods({
    executorId: 'executor',
    engine: {
      inspectContainer: async () => (labels === null ? null : ({ ...container } as never)),
    },
    readPods: () => (row === null ? [] : [{ ...ROW, ...row }]),
  });
  return lostPods([MARK]);
}

it.each([
  ['was removed', null],
  ['has lost its labels', {}],
  ['belongs to another executor', { ...OURS, [LABELS.executor]: 'other' }],
])('reports a pod that should run and whose container %s', async (_, labels) => {
  expect(await lostOf(labels, {})).toEqual(['pod']);
});

it.each([
  ['has ended by itself', OURS, {}],
  ['was removed by its renter', null, { desired: 'removed' }],
  ['was changed', null, { generation: 3 }],
  ['is being changed', null, { staged_json: '{}' }],
  ['is not in the store any more', null, null],
] as const)('does not report a pod that %s', async (_, labels, row) => {
  expect(await lostOf(labels, row)).toEqual([]);
});
