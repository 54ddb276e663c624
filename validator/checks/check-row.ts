/** What the rows of the table of checks are written with. */
import type { Check } from './check.ts';

type Row = Pick<Check, 'id' | 'detects' | 'required' | 'category' | 'judge' | 'remedies'> &
  Partial<Check>;

/** What most checks are: an error that counts, once it does, and by which others are judged all the same. */
export function row(check: Row): Check {
  return {
    severity: 'error',
    fatal: false,
    mode: 'enforce',
    whileRented: false,
    isTrial: false,
    ...check,
  };
}

export const SAY_AGAIN = 'Look at the log of the agent, then start it again.';
