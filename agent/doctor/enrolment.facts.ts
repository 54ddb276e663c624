/** The agent's key and its provider's word for it, as they lie in the agent's folder. Only looked at. */

import { type Enrolment, isGenuine, readEnrolment } from '#shared/api/agent/identity.ts';
import { type Told, tell } from '#shared/check/told.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { readIdentity } from '#shared/signing/identity.ts';

export type EnrolmentFacts = Told<{
  /** Null: the agent has made none yet. */
  publicKey: string | null;
  /** Null: there is no file, or nothing in it that is one. */
  enrolment: (Enrolment & { genuine: boolean }) | null;
  nowMs: number;
}>;

const DEADLINE_MS = 3_000;

export function readEnrolmentFacts(clock: Clock, home: string): Promise<EnrolmentFacts> {
  return tell(clock, DEADLINE_MS, async () => {
    const enrolment = readEnrolment(home);
    return {
      publicKey: readIdentity(home)?.publicKey ?? null,
      enrolment: enrolment && { ...enrolment, genuine: isGenuine(enrolment) },
      nowMs: clock.now(),
    };
  });
}
