import { expect, it } from 'vitest';
import { POD_PHASES, type PodPhase } from '#shared/api/agent/pod.ts';
import { MOVES, mayMove, RESTING_PHASES } from './pod.state.ts';

it('allows removal from every phase except `removed`, which is final', () => {
  for (const phase of POD_PHASES) {
    expect(mayMove(phase, 'removing')).toBe(phase !== 'removed');
    expect(mayMove(phase, phase)).toBe(true);
  }
  expect(MOVES.removed).toEqual([]);
  expect(MOVES.removing).toEqual(['removed']);
});

it('reaches every phase from pending', () => {
  const reached = new Set<PodPhase>(['pending']);
  for (const phase of reached) for (const next of MOVES[phase]) reached.add(next);
  expect([...reached].toSorted()).toEqual([...POD_PHASES].toSorted());
});

it('leaves a resting phase only for a new generation or removal', () => {
  for (const phase of RESTING_PHASES.filter((resting) => resting !== 'removed')) {
    expect(MOVES[phase]).toEqual(['pending', 'removing']);
  }
});
