/** The event, and the mail where one is due, of a state that the sync has a pod come to. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { EventReason } from '../../delivery/events/event.schemas.ts';
import { lastRequestId } from '../../delivery/events/event.service.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { type PodState, podStateOf, wirePhase, wireStatus } from './pod.state.ts';
import { recordPodEvent } from './pod-event.ts';
import { mailPodFailed } from './pod-mails.ts';
import { causeOf, eventOf, UNDONE } from './pod-sync.events.ts';

/** Of which the renter gets a mail. */
const FAILURES: readonly PodState[] = ['creation_failed', 'reboot_failed', 'failed', 'broken'];

export type Told = {
  reason: EventReason | null;
  message: string;
  /** A change failed, and the pod is what it was before it. */
  isUndone?: boolean;
};

export type TellDeps = { clock: Clock; random: Random; mails: Mails };

/** `pod` as it was before; in the transaction that moved it. */
export async function tellMove(
  tx: Db,
  deps: TellDeps,
  pod: Pod,
  to: PodState,
  told: Told,
): Promise<void> {
  const from = podStateOf(pod.state);
  const { reason, message } = told;
  const { type, outcome } = told.isUndone === true ? UNDONE : eventOf(from, to);
  const cause = causeOf(from, type);
  const requestId = cause === null ? null : await lastRequestId(tx, pod.id, cause);
  if (FAILURES.some((state) => state === to)) {
    await mailPodFailed(tx, deps.mails, pod, message, deps.clock.now());
  }
  await recordPodEvent(tx, deps, pod, {
    subEventType: `${type}.${outcome}`,
    actor: { ...SYSTEM_ACTOR, requestId },
    toStatus: wireStatus(to),
    reason,
    facts: {
      ...(outcome === 'failed' ? { error: message } : {}),
      // Several states look alike on the wire: the phase tells them apart.
      ...(outcome === 'status' ? { detail: wirePhase(to) } : {}),
    },
  });
}
