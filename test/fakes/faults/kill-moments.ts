/**
 * The moments at which a kill matrix kills a process. By default it kills at every fifth change, alternately after and
 * before the change, because each round takes seconds. With KILL_MATRIX=full (`npm run soak -- --only kills`) it kills
 * before and after every change.
 */
const SAMPLED = 5;

export type KillMoment = 'before' | 'after';

export function momentsOf(index: number): readonly KillMoment[] {
  if (process.env['KILL_MATRIX'] === 'full') return ['before', 'after'];
  if (index % SAMPLED !== 0) return [];
  return [index % 2 === 0 ? 'after' : 'before'];
}
