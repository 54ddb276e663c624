/** Judges whether validators can believe this agent: its key, signed by the provider's hotkey. Pure. */

import { type Finding, fail, ok, unknown, warn } from '#shared/check/finding.ts';
import type { EnrolmentFacts } from './enrolment.facts.ts';

const ID = 'enrolment';
const ENROL = 'npm run agent -- enrol --help';
const DAY_MS = 86_400_000;
/** Time enough to fetch the hotkey from where it is kept. */
const EARLY_DAYS = 14;

/** `executorId`: null where the configuration has none. */
export function enrolmentFindings(told: EnrolmentFacts, executorId: string | null): Finding[] {
  return [judge(told, executorId)];
}

function judge(told: EnrolmentFacts, executorId: string | null): Finding {
  if ('problem' in told) return unknown(ID, told.problem, 'run the doctor as the agent’s user');
  const { publicKey, enrolment, nowMs } = told.value;
  if (enrolment === null) return fail(ID, 'not enrolled: no validator believes this agent', ENROL);
  const wrong = wrongIn(enrolment, { publicKey, executorId });
  if (wrong !== null) return fail(ID, `the enrolment is ${wrong}`, ENROL);
  const days = Math.floor((enrolment.expires_ms - nowMs) / DAY_MS);
  if (enrolment.expires_ms <= nowMs) return fail(ID, 'the enrolment has ended', ENROL);
  const what = `by ${enrolment.hotkey}, for ${days} more days`;
  return days < EARLY_DAYS ? warn(ID, what, ENROL) : ok(ID, what);
}

type Known = Extract<EnrolmentFacts, { value: object }>['value'];

function wrongIn(
  enrolment: NonNullable<Known['enrolment']>,
  { publicKey, executorId }: { publicKey: string | null; executorId: string | null },
): string | null {
  if (publicKey === null || enrolment.public_key !== publicKey) return 'of another key';
  if (executorId !== null && enrolment.executor_id !== executorId) return 'of another executor';
  return enrolment.genuine ? null : `not signed by ${enrolment.hotkey}`;
}
