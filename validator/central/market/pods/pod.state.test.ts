import { expect, it } from 'vitest';
import { mayMove, POD_STATES, sourcesOf, wirePhase, wireStatus } from './pod.state.ts';

it('allows the deletion of every pod that has not ended, and no change after the end', () => {
  const ends = ['deleting', 'deleted'];
  for (const state of POD_STATES) {
    expect(mayMove(state, 'deleting'), state).toBe(!ends.includes(state));
    expect(mayMove('deleted', state), state).toBe(false);
  }
});

it('never restarts a failed creation', () => {
  expect(POD_STATES.filter((to) => mayMove('creation_failed', to))).toEqual([
    'deleting',
    'deleted',
  ]);
});

it('lets only pods with a container become rebooting', () => {
  expect(sourcesOf('rebooting')).toEqual(['running', 'reboot_failed', 'unknown', 'broken']);
});

it.each([
  ['pulling', 'PENDING', 'pulling'],
  ['running', 'RUNNING', 'ready'],
  ['unknown', 'RUNNING', 'unreachable'],
  ['rebooting', 'REBOOT_PENDING', 'rebooting'],
  ['creation_failed', 'CREATION_FAILED', null],
  ['deleted', 'DELETED', null],
] as const)('returns state %s as status %s', (state, status, phase) => {
  expect(wireStatus(state)).toBe(status);
  expect(wirePhase(state)).toBe(phase);
});
