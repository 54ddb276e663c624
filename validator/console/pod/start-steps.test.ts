import { expect, it } from 'vitest';
import { remedyOf } from './remedies.ts';
import { basisOf, startSteps } from './start-steps.ts';

const states = (phase: Parameters<typeof startSteps>[0]) =>
  startSteps(phase).map((step) => `${step.phase} ${step.state}`);

it('shows the steps before and after the present phase', () => {
  expect(states('pulling')).toEqual([
    'queued done',
    'pulling now',
    'starting future',
    'configuring future',
    'ready future',
  ]);
});

it('shows a build or a restore only while it runs', () => {
  expect(states('restoring')).toContain('restoring now');
  expect(states('ready')).not.toContain('restoring done');
  expect(startSteps('ready').every(({ state }) => state === 'done')).toBe(true);
});

it.each([null, 'stopped', 'deleting', 'unreachable'] as const)(
  '%s has no steps of a start',
  (phase) => expect(startSteps(phase)).toEqual([]),
);

it('describes estimates and remedies, and ignores unknown ones', () => {
  expect(basisOf('launches')).toBe('from earlier starts on this node');
  expect([basisOf(null), basisOf('x')]).toEqual(['', '']);
  expect(remedyOf('image_pull_failed')).toContain('registry login');
  expect([remedyOf(null), remedyOf('user_initiated')]).toEqual([null, null]);
});
