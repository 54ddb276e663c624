import { expect, it } from 'vitest';
import { mayMove, POD_STATES, sourcesOf, wirePhase, wireStatus } from './pod.state.ts';

it('lets every pod that is not ended be deleted, and nothing come back from the end', () => {
  const ends = ['deleting', 'deleted'];
  for (const state of POD_STATES) {
    expect(mayMove(state, 'deleting'), state).toBe(!ends.includes(state));
    expect(mayMove('deleted', state), state).toBe(false);
  }
});

it('never brings a failed creation back', () => {
  expect(POD_STATES.filter((to) => mayMove('creation_failed', to))).toEqual([
    'deleting',
    'deleted',
  ]);
});

it('knows where a reboot may begin', () => {
  expect(sourcesOf('rebooting')).toEqual(['running', 'reboot_failed', 'unknown']);
});

it.each([
  ['pulling', 'PENDING', 'pulling'],
  ['running', 'RUNNING', 'ready'],
  ['unknown', 'RUNNING', 'unreachable'],
  ['rebooting', 'REBOOT_PENDING', 'rebooting'],
  ['creation_failed', 'CREATION_FAILED', null],
  ['deleted', 'DELETED', null],
] as const)('%s is %s on the wire', (state, status, phase) => {
  expect(wireStatus(state)).toBe(status);
  expect(wirePhase(state)).toBe(phase);
});
