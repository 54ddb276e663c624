/**
 * When a kill matrix kills. The suite kills at every third change, after one and before the next, because each round
 * costs seconds; KILL_MATRIX=full kills before and after every change.
 */
export type KillMoment = 'before' | 'after';

export function momentsOf(index: number): readonly KillMoment[] {
  if (process.env['KILL_MATRIX'] === 'full') return ['before', 'after'];
  if (index % 3 !== 0) return [];
  return [index % 2 === 0 ? 'after' : 'before'];
}
