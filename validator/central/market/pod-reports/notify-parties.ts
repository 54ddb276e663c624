/**
 * Notifies the renter of the end of a report, and the provider of a confirmed one. The provider's mail has no text of
 * the renter.
 */
import { formatUsdFloor, microToUsd } from '#shared/api/money.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { accountOf } from '../../accounts/auth/account-access.ts';
import { recordEvent } from '../../delivery/events/event.service.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import { podReportMail, reportedNodeMail } from '../../delivery/mail/mail-text.ts';
import type { Db, PodReport } from '../../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { huidOf } from '../executors/executor-response.ts';
import { findAnyPod } from '../pods/pod-access.ts';
import { providerMailOf } from './report.store.ts';

export type NotifyDeps = { clock: Clock; random: Random; mails: Mails; wakeMail(): void };

const WEEK_MS = 7 * 86_400_000;

/** Stores an event and a mail for the renter, and a mail for the provider if the report was confirmed. */
export async function notifyEnd(
  tx: Db,
  deps: NotifyDeps,
  report: PodReport,
  shortfall: string | null,
): Promise<void> {
  const { id, pod_id: podId, account_id: accountId, executor_id: node, state, reason } = report;
  const podName = (await findAnyPod(tx, podId))?.pod_name ?? podId;
  await recordEvent(tx, deps, {
    accountId,
    podId,
    subEventType: 'account.status',
    actor: SYSTEM_ACTOR,
    payload: {
      pod_name: podName,
      node,
      detail: `pod_report_${state}`,
      report_id: id,
      amount_usd: microToUsd(report.refund_uusd),
    },
  });
  const { email } = await accountOf(tx, { accountId });
  const refund = formatUsdFloor(report.refund_uusd);
  await deps.mails.add(tx, {
    accountId,
    to: email,
    kind: 'pod-report',
    content: podReportMail({ podName, state, shortfall, refund }),
    dedupeKey: `pod-report:${id}:renter`,
    usefulForMs: WEEK_MS,
  });
  if (state !== 'confirmed') return;
  const provider = await providerMailOf(tx, node);
  if (provider === undefined || provider.email === null) return;
  await deps.mails.add(tx, {
    providerId: provider.id,
    to: provider.email,
    kind: 'reported-node',
    content: reportedNodeMail({ node: huidOf(node), reason, shortfall, refund }),
    dedupeKey: `pod-report:${id}:provider`,
    usefulForMs: WEEK_MS,
    // Exempt from the provider's mail limit: a report is confirmed at most once, and each must be known.
    uncounted: true,
  });
}
