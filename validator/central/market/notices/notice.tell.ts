/** Tells renters of a notice period: an event for each of their pods on the node, and one mail for each renter. */

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

/** What happened to it. */
type NoticeStep = 'set' | 'cancelled' | 'started' | 'ended';

export type TellDeps = {
  clock: Clock;
  random: Random;
  mails: Mails;
  wakeMail(): void;
};

/** A mail that a mailbox takes this late is still of use. */
const DAY_MS = 86_400_000;
const MAILS = { set: noticeSetMail, cancelled: noticeCancelledMail };

/** In the transaction of what happened. Of each step at most one mail reaches an account, whatever is repeated. */
export async function tellRenters(
  tx: Db,
  deps: TellDeps,
  notice: Notice,
  { step, actor }: { step: NoticeStep; actor: Actor },
): Promise<void> {
  const pods = await listKeptOn(tx, notice.executor_id);
  for (const pod of pods) await tellPod(tx, deps, notice, { step, actor, pod });
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
      // A node has few notices a day, and a renter is to hear of each.
      uncounted: true,
    });
  }
}

async function tellPod(
  tx: Db,
  deps: TellDeps,
  notice: Notice,
  { step, actor, pod }: { step: NoticeStep; actor: Actor; pod: Pod },
): Promise<void> {
  await recordPodEvent(tx, deps, pod, {
    ...{ subEventType: 'notice.status', actor, reason: 'provider_notice' },
    facts: {
      detail: `notice_${step}`,
      starting_at: notice.start_text,
      period_in_minute: notice.minutes,
      permanent_removal: notice.permanent === 1,
    },
  });
}
