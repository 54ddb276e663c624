/** When a kill matrix kills at each change: in the suite before one and after the next, with KILL_MATRIX=full both at each. */
export type KillMoment = 'before' | 'after';

export function momentsOf(index: number): readonly KillMoment[] {
  if (process.env['KILL_MATRIX'] === 'full') return ['before', 'after'];
  return [index % 2 === 0 ? 'after' : 'before'];
}
