/**
 * Notifies renters that their money is running out or has run out: records an event, and queues a mail if the renter
 * has mails enabled.
 */
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { accountOf } from '../../accounts/auth/account-access.ts';
import { wants } from '../../accounts/notification-settings/notification-setting.service.ts';
import { recordEvent } from '../../delivery/events/event.service.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import {
  balanceExhaustedMail,
  balanceRunningOutMail,
  type MailContent,
  type MailKind,
} from '../../delivery/mail/mail-text.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { minutesLeft } from '../../platform/schedule/warnings.ts';

/** Mails are discarded if they could not be sent within this time. */
const MAIL_USEFUL_MS = 3_600_000;

export type NotifyDeps = { clock: Clock; random: Random; mails: Mails };

/** Warns that the account's pods will stop at `atMs` at their present cost. */
export async function notifyRunningOut(
  tx: Db,
  deps: NotifyDeps,
  accountId: string,
  atMs: number,
): Promise<void> {
  const minutes = minutesLeft(atMs, deps.clock.now());
  const facts = { minutes_left: minutes, runs_out_at: naiveUtc(atMs) };
  await record(tx, deps, accountId, { detail: 'balance_warning', ...facts });
  const content = balanceRunningOutMail(minutes);
  const about = `${atMs}-${minutes}`;
  await mailTo(tx, deps, accountId, { kind: 'balance-running-out', content, about });
}

/** Reports that these pods were stopped. */
export async function notifyExhausted(
  tx: Db,
  deps: NotifyDeps,
  accountId: string,
  pods: readonly Pod[],
): Promise<void> {
  if (pods.length === 0) return;
  await record(tx, deps, accountId, {
    detail: 'balance_exhausted',
    pods: pods.map(({ id }) => id),
  });
  const content = balanceExhaustedMail(pods.map(({ pod_name }) => pod_name));
  const about = String(deps.clock.now());
  await mailTo(tx, deps, accountId, { kind: 'balance-exhausted', content, about });
}

async function record(
  tx: Db,
  deps: NotifyDeps,
  accountId: string,
  payload: { detail: string; pods?: string[] },
): Promise<void> {
  await recordEvent(tx, deps, {
    accountId,
    subEventType: 'billing.status',
    actor: SYSTEM_ACTOR,
    reason: 'balance_exhausted',
    payload: { pod_name: null, node: null, ...payload },
  });
}

async function mailTo(
  tx: Db,
  { mails }: NotifyDeps,
  accountId: string,
  { kind, content, about }: { kind: MailKind; content: MailContent; about: string },
): Promise<void> {
  if (!(await wants(tx, accountId, 'low_balance'))) return;
  const { email: to } = await accountOf(tx, { accountId });
  const dedupeKey = `${kind}:${accountId}:${about}`;
  await mails.add(tx, { accountId, to, kind, content, dedupeKey, usefulForMs: MAIL_USEFUL_MS });
}
