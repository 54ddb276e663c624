/**
 * When a kill matrix kills: in the suite at every third change, after one and before the next, for each round costs
 * seconds; with KILL_MATRIX=full before and after every change.
 */
export type KillMoment = 'before' | 'after';

export function momentsOf(index: number): readonly KillMoment[] {
  if (process.env['KILL_MATRIX'] === 'full') return ['before', 'after'];
  if (index % 3 !== 0) return [];
  return [index % 2 === 0 ? 'after' : 'before'];
}
