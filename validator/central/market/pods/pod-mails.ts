/** Mails about pods, for renters who have such mails enabled. Each is queued in the transaction of its cause. */
import { naiveUtc } from '#shared/runtime/clock.ts';
import { addressOf } from '../../accounts/auth/account-access.ts';
import type { NotificationFlag } from '../../accounts/notification-settings/notification-setting.schemas.ts';
import { wants } from '../../accounts/notification-settings/notification-setting.service.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import {
  idleShutdownMail,
  type MailContent,
  type MailKind,
  podFailedMail,
  scheduledRemovalMail,
} from '../../delivery/mail/mail-text.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';

const DAY_MS = 86_400_000;
const MAX_WHY_CHARS = 500;
const DATE_AND_MINUTE_CHARS = 16;

/** Queues the mail about a failed pod; one mail per failure. */
export async function mailPodFailed(tx: Db, mails: Mails, pod: Pod, why: string, nowMs: number) {
  const text = why.slice(0, MAX_WHY_CHARS) || 'the reason is unknown.';
  await mailRenter(tx, mails, pod, {
    flag: 'pod_failed',
    kind: 'pod-failed',
    content: podFailedMail(pod.pod_name, text),
    dedupeKey: `pod-failed:${pod.id}:${nowMs}`,
    usefulForMs: DAY_MS,
  });
}

/** Queues the mail about a scheduled removal; one mail per scheduled time. */
export async function mailRemoval(
  tx: Db,
  mails: Mails,
  pod: Pod,
  { removalAt, nowMs }: { removalAt: number; nowMs: number },
): Promise<void> {
  await mailRenter(tx, mails, pod, {
    flag: 'scheduled_removal',
    kind: 'scheduled-removal',
    content: scheduledRemovalMail(pod.pod_name, toTheMinute(removalAt)),
    dedupeKey: `scheduled-removal:${pod.id}:${removalAt}`,
    usefulForMs: removalAt - nowMs,
  });
}

/**
 * Queues the mail about an idle shutdown; one mail per idle period, even if the stop is postponed. A period begins with
 * `idle_from` (pod-idle.ts).
 */
export async function mailIdle(
  tx: Db,
  mails: Mails,
  pod: Pod,
  { stopsAt, removalAt, nowMs }: { stopsAt: number; removalAt: number; nowMs: number },
): Promise<void> {
  const content = idleShutdownMail({
    podId: pod.id,
    podName: pod.pod_name,
    minutes: pod.idle_shutdown_minutes ?? 0,
    stopsAt: toTheMinute(stopsAt),
    removedAt: toTheMinute(removalAt),
  });
  await mailRenter(tx, mails, pod, {
    flag: 'scheduled_removal',
    kind: 'idle-shutdown',
    content,
    dedupeKey: `idle-shutdown:${pod.id}:${pod.idle_from ?? pod.first_running_at}`,
    usefulForMs: removalAt - nowMs,
  });
}

function toTheMinute(atMs: number): string {
  return naiveUtc(atMs).slice(0, DATE_AND_MINUTE_CHARS).replace('T', ' ');
}

type PodMail = {
  flag: NotificationFlag;
  kind: MailKind;
  content: MailContent;
  dedupeKey: string;
  usefulForMs: number;
};

async function mailRenter(tx: Db, mails: Mails, pod: Pod, { flag, ...mail }: PodMail) {
  const accountId = pod.account_id;
  const to = await addressOf(tx, accountId);
  if (to === null || !(await wants(tx, accountId, flag))) return;
  await mails.add(tx, { accountId, to, ...mail });
}
