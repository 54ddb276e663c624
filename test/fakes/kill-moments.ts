/**
 * When a kill matrix kills: in the suite at every second change, after one and before the next, for each round costs
 * seconds; with KILL_MATRIX=full before and after every change.
 */
export type KillMoment = 'before' | 'after';

export function momentsOf(index: number): readonly KillMoment[] {
  if (process.env['KILL_MATRIX'] === 'full') return ['before', 'after'];
  if (index % 2 === 1) return [];
  return [index % 4 === 0 ? 'after' : 'before'];
}
