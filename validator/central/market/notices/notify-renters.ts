/** Notifies renters of a notice period: one event for each pod on the node, and one mail for each renter. */

import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { accountOf } from '../../accounts/auth/account-access.ts';
import { wants } from '../../accounts/notification-settings/notification-setting.service.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import { noticeCancelledMail, noticeSetMail } from '../../delivery/mail/mail-text.ts';
import type { Db, Notice, Pod } from '../../platform/database/tables.ts';
import type { Actor } from '../../platform/identity.ts';
import { huidOf } from '../executors/executor-response.ts';
import { listKeptOn } from '../pods/pod.service.ts';
import { recordPodEvent } from '../pods/pod-events.ts';

type NoticeStep = 'set' | 'cancelled' | 'started' | 'ended';

export type NotifyDeps = {
  clock: Clock;
  random: Random;
  mails: Mails;
  wakeMail(): void;
};

/** Shortest time during which delivery of a mail is attempted. */
const DAY_MS = 86_400_000;
const MAILS = { set: noticeSetMail, cancelled: noticeCancelledMail };

/**
 * Notifies the renters. Runs in the transaction of the step. An account receives at most one mail per step, even if the
 * call is repeated.
 */
export async function notifyRenters(
  tx: Db,
  deps: NotifyDeps,
  notice: Notice,
  { step, actor }: { step: NoticeStep; actor: Actor },
): Promise<void> {
  const pods = await listKeptOn(tx, notice.executor_id);
  for (const pod of pods) await recordNotice(tx, deps, notice, { step, actor, pod });
  if (step !== 'set' && step !== 'cancelled') return;
  for (const [accountId, own] of Map.groupBy(pods, (pod) => pod.account_id)) {
    if (!(await wants(tx, accountId, 'notice_period'))) continue;
    const { email } = await accountOf(tx, { accountId });
    await deps.mails.add(tx, {
      accountId,
      to: email,
      kind: 'notice-period',
      content: MAILS[step]({
        node: huidOf(notice.executor_id),
        startText: notice.start_text,
        minutes: notice.minutes,
        reason: notice.reason,
        podNames: own.map((pod) => pod.pod_name),
      }),
      dedupeKey: `notice:${notice.id}:${accountId}:${step}`,
      usefulForMs: Math.max(DAY_MS, notice.start_at - deps.clock.now()),
      // Exempt from the account's mail limit: a node has few notices a day, and each must reach its renters.
      uncounted: true,
    });
  }
}

async function recordNotice(
  tx: Db,
  deps: NotifyDeps,
  notice: Notice,
  { step, actor, pod }: { step: NoticeStep; actor: Actor; pod: Pod },
): Promise<void> {
  await recordPodEvent(tx, deps, pod, {
    subEventType: 'notice.status',
    actor,
    reason: 'provider_notice',
    facts: {
      detail: `notice_${step}`,
      starting_at: notice.start_text,
      period_in_minute: notice.minutes,
      permanent_removal: notice.permanent === 1,
    },
  });
}
