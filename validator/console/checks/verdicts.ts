/** Results of the check of a node, and their names for people. Pure. */

export const VERDICTS = ['ok', 'failed', 'withheld'] as const;
export type Verdict = (typeof VERDICTS)[number];

export const VERDICT_NAMES: Readonly<Record<Verdict, string>> = {
  ok: 'Passed',
  failed: 'Failed',
  withheld: 'Withheld',
};
