/** The check of the agent's enrolment: its key, signed by the provider's hotkey. Reads files, writes none. */

import { type Enrolment, isEnrolmentSigned, readEnrolment } from '#shared/api/agent/identity.ts';
import { fail, ok, unread, warn } from '#shared/check/check.ts';
import type { DoctorCheck } from '#shared/check/doctor.ts';
import { type Observed, observe } from '#shared/check/observe.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { readIdentity } from '#shared/signing/identity.ts';

type EnrolmentFiles = {
  /** Null if the agent has not created its key yet. */
  publicKey: string | null;
  /** Null without a valid file. */
  enrolment: (Enrolment & { genuine: boolean }) | null;
  nowMs: number;
};

export type EnrolmentFacts = {
  files: Observed<EnrolmentFiles>;
  /** Null if the configuration has none. */
  executorId: string | null;
};

const DEADLINE_MS = 3_000;
const ENROL = 'npm run agent -- enrol --help';
const DAY_MS = 86_400_000;
/**
 * Days before the expiry at which the check warns, so that the provider has time to fetch the hotkey from offline
 * storage.
 */
const EARLY_DAYS = 14;

export async function readEnrolmentFacts(
  clock: Clock,
  home: string,
  executorId: string | null,
): Promise<EnrolmentFacts> {
  const files = await observe(clock, DEADLINE_MS, async () => {
    const enrolment = readEnrolment(home);
    return {
      publicKey: readIdentity(home)?.publicKey ?? null,
      enrolment: enrolment && { ...enrolment, genuine: isEnrolmentSigned(enrolment) },
      nowMs: clock.now(),
    };
  });
  return { files, executorId };
}

export const ENROLMENT_CHECKS: readonly DoctorCheck<EnrolmentFacts>[] = [
  {
    id: 'enrolment',
    detects: 'an agent that validators do not trust',
    required: 'the agent’s key and executor id, signed by the provider’s hotkey and not expired',
    judge({ files, executorId }) {
      if ('problem' in files)
        return unread(files, files.problem, 'run the doctor as the agent’s user');
      const { publicKey, enrolment, nowMs } = files.value;
      if (enrolment === null) return fail('not enrolled: no validator trusts this agent', ENROL);
      const mismatch = mismatchIn(enrolment, publicKey, executorId);
      if (mismatch !== null) return fail(`the enrolment is ${mismatch}`, ENROL);
      if (enrolment.expires_ms <= nowMs) return fail('the enrolment has expired', ENROL);
      const days = Math.floor((enrolment.expires_ms - nowMs) / DAY_MS);
      const measured = `enrolled by ${enrolment.hotkey}, for ${days} more days`;
      return days < EARLY_DAYS ? warn(measured, ENROL) : ok(measured);
    },
  },
];

function mismatchIn(
  enrolment: NonNullable<EnrolmentFiles['enrolment']>,
  publicKey: string | null,
  executorId: string | null,
): string | null {
  if (publicKey === null || enrolment.public_key !== publicKey) return 'of another key';
  if (executorId !== null && enrolment.executor_id !== executorId) return 'of another executor';
  return enrolment.genuine ? null : `not signed by ${enrolment.hotkey}`;
}
