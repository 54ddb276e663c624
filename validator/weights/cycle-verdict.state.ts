/** What a cycle came to for one executor. `withheld`: it could not be measured, and costs nothing. */
export const CYCLE_VERDICTS = ['ok', 'failed', 'withheld'] as const;
export type CycleVerdict = (typeof CYCLE_VERDICTS)[number];
