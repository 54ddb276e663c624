/** What mails say: plain text and HTML of one content, everything escaped. Pure. */

/** A mail's words. */
export type MailContent = { subject: string; text: string; html: string };

export type MailKind =
  | 'verify-email'
  | 'password-reset'
  | 'password-changed'
  | 'email-changed'
  | 'low-balance'
  | 'pod-failed'
  | 'scheduled-removal'
  | 'idle-shutdown'
  | 'balance-running-out'
  | 'balance-exhausted'
  | 'top-up-suspended'
  | 'notice-period'
  | 'machine-request'
  | 'machine-request-offer'
  | 'webhook-disabled';

/** Where recipients act; nothing of a request ever gets in here. */
export type MailPlaces = {
  /** Base address of a web console with the pages /verify-email and /reset-password; null: there is none. */
  consoleUrl: string | null;
};

type Part = { text: string; html: string };

/** With the token that proves the address. */
export function verificationMail(places: MailPlaces, token: string): MailContent {
  return mail('Confirm your e-mail address', [
    paragraph('Somebody, hopefully you, gave this address for an account at Podwright.'),
    ...step(places, 'verify-email', 'POST /auth/verify-email', token),
    paragraph('This works once and for 24 hours. If it was not you, do nothing.'),
  ]);
}

/** With the token that lets its holder set a password. */
export function passwordResetMail(places: MailPlaces, token: string): MailContent {
  return mail('Reset your password', [
    paragraph('Somebody, hopefully you, asked for a new password of your account at Podwright.'),
    ...step(places, 'reset-password', 'POST /users/reset-password', token),
    paragraph('This works once and for one hour. If it was not you, do nothing.'),
  ]);
}

/** To whom the password was changed for. */
export function passwordChangedMail(): MailContent {
  return mail('Your password was changed', [
    paragraph('The password of your account at Podwright was changed. Other sessions have ended.'),
    paragraph('If it was not you, reset your password now and look at your API keys.'),
  ]);
}

/** To the address that was the account's until now. */
export function emailChangedMail(newAddress: string): MailContent {
  return mail('Your e-mail address was changed', [
    paragraph(`Your account at Podwright now has the address ${newAddress}.`),
    paragraph('If it was not you, contact support: this address no longer opens the account.'),
  ]);
}

/** `left` in dollars, `runway` as `3 h 12 min left` or null while nothing runs. */
export function lowBalanceMail(left: string, runway: string | null): MailContent {
  return mail(`Your balance is low: ${runway ?? left}`, [
    paragraph(`Your account at Podwright has ${left} left.`),
    ...(runway === null ? [] : [paragraph(`At what your pods cost now: ${runway}.`)]),
    paragraph('When nothing is left, pods are stopped. Top up, or delete what you do not need.'),
    topUpWays(),
    paragraph(
      'You get this once, and again only after the balance was topped up or well above the threshold. ' +
        'Set the threshold with PUT /users/me/low-balance-threshold, switch these mails off with PUT /users/me/notification.',
    ),
  ]);
}

/** A pod that does not run any more, or never did; `why` is what its event says. */
export function podFailedMail(podName: string, why: string): MailContent {
  return mail(`Your pod ${podName} failed`, [
    paragraph(`Your pod ${podName} at Podwright failed: ${why}`),
    paragraph(
      'GET /pods/{id}/events tells what happened. You are not charged while it does not run.',
    ),
  ]);
}

/** A pod that is removed at `at`, UTC. */
export function scheduledRemovalMail(podName: string, at: string): MailContent {
  return mail(`Your pod ${podName} will be removed`, [
    paragraph(`Your pod ${podName} at Podwright will be removed at ${at} UTC, with its data.`),
    paragraph(
      'To keep it, cancel that with DELETE /pods/{id}/schedule-removal, or choose another time.',
    ),
  ]);
}

/** A pod that its renter has stopped when nobody uses it; times are UTC. */
export type IdleTold = {
  podId: string;
  podName: string;
  /** `idle_shutdown_minutes` as they are set. */
  minutes: number;
  stopsAt: string;
  removedAt: string;
};

/** It is about to be stopped. */
export function idleShutdownMail(told: IdleTold): MailContent {
  const { podId, podName, minutes, stopsAt, removedAt } = told;
  return mail(`Your pod ${podName} will be stopped: nobody uses it`, [
    paragraph(
      `Nobody uses your pod ${podName} at Podwright, and it is set to stop after ${minutes} minutes without use. ` +
        `It will be stopped at ${stopsAt} UTC and removed with its data at ${removedAt} UTC.`,
    ),
    paragraph(
      `To keep it, use it before it is stopped, or set the minutes anew before it is removed: PATCH /pods/${podId} ` +
        'with {"idle_shutdown_minutes": …}, null for never.',
    ),
    paragraph(
      'You get this once until the pod is used again, also where it is stopped later because nobody could measure its use for a while.',
    ),
  ]);
}

/** Auto top-ups that charge nothing any more, and why. */
export function topUpsSuspendedMail(reason: string): MailContent {
  return mail('Your auto top-up is suspended', [
    paragraph(`The auto top-up of your account at Podwright is suspended: ${reason}.`),
    paragraph(
      'Pods run on as long as your balance lasts. Look at the payment method, then switch the auto top-up on again with PUT /users/me/auto-top-up.',
    ),
  ]);
}

/** A webhook that nothing is sent to any more; `host` is its receiver's. */
export function webhookDisabledMail(host: string, reason: 'gone' | 'failing'): MailContent {
  const why =
    reason === 'gone'
      ? 'it answered that it is gone for good (410)'
      : 'it has taken nothing for five days';
  return mail('A webhook was disabled', [
    paragraph(`Your webhook at ${host} was disabled, because ${why}.`),
    paragraph(
      'Nothing is lost: enable it with PATCH /webhooks/{id}, and it goes on where it stopped.',
    ),
  ]);
}

/** Pods are stopped in so many minutes, as things are. */
export function balanceRunningOutMail(minutes: number): MailContent {
  return mail('Your balance is nearly used up', [
    paragraph(`As things are, your balance is used up in ${minutes} minutes. Your pods stop then.`),
    paragraph('Top up to keep them running.'),
    topUpWays(),
  ]);
}

/** They were stopped. */
export function balanceExhaustedMail(podNames: readonly string[]): MailContent {
  return mail('Your pods were stopped', [
    paragraph('Your balance is used up, and these pods were stopped:'),
    block(podNames.join('\n')),
    paragraph('Their data is kept for ten minutes. Top up until then and they start again.'),
    topUpWays(),
  ]);
}

/** What a provider announced of a node, to a renter with pods on it. */
export type NoticeTold = {
  node: string;
  /** As the provider wrote it. */
  startText: string;
  /** Null: the node goes for good. */
  minutes: number | null;
  reason: string | null;
  podNames: readonly string[];
};

/** A maintenance or a removal is to come. */
export function noticeSetMail(told: NoticeTold): MailContent {
  const { node, startText, minutes, reason } = told;
  const [subject, what] =
    minutes === null
      ? [
          `Node ${node} goes away`,
          `The provider takes the node ${node} away for good at ${startText}. Your pods on it end then; save before what you need.`,
        ]
      : [
          `Maintenance of node ${node}`,
          `The provider has announced ${minutes} minutes of maintenance of the node ${node} from ${startText} on. Your pods stay; while the node cannot be reached in that time, nothing is charged.`,
        ];
  return mail(subject, [
    paragraph(what),
    ...(reason === null ? [] : [paragraph(`The provider's words: ${reason}`)]),
    paragraph(podsOf(told)),
  ]);
}

/** It was taken back. */
export function noticeCancelledMail(told: NoticeTold): MailContent {
  const { node, startText, minutes } = told;
  const what = minutes === null ? 'removal' : 'maintenance';
  return mail(`Node ${node}: ${what} cancelled`, [
    paragraph(`The provider has cancelled the ${what} of the node ${node} at ${startText}.`),
    paragraph(podsOf(told)),
  ]);
}

/** A node was added for a machine request. */
export function requestFulfilledMail(gpuClass: string, node: string): MailContent {
  return mail(`Your machine request: ${gpuClass}`, [
    paragraph(`The node ${node} was added for your machine request of ${gpuClass}.`),
    paragraph('Look at it with GET /executors?machine_request_id=…, and rent it while it is free.'),
  ]);
}

/** To a provider that wants to hear of requests of that type. */
export function requestOfferedMail(requestId: string, gpuType: string): MailContent {
  return mail(`A renter looks for ${gpuType}`, [
    paragraph(`A renter asks for a node with ${gpuType}, which you wanted to hear of.`),
    paragraph(
      `Providers with a verified node read it at GET /machine-requests/${requestId} of the portal.`,
    ),
  ]);
}

/** Named in a mail at most; the rest is counted. */
const MAX_NAMED = 20;

function podsOf({ podNames }: NoticeTold): string {
  const more = podNames.length - MAX_NAMED;
  const rest = more > 0 ? ` and ${more} more` : '';
  return `Your pods on it: ${podNames.slice(0, MAX_NAMED).join(', ')}${rest}.`;
}

function mail(subject: string, parts: readonly Part[]): MailContent {
  const body = parts.map(({ html }) => html).join('\n');
  return {
    subject,
    text: `${parts.map(({ text }) => text).join('\n\n')}\n`,
    html:
      '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">' +
      `<title>${escapeHtml(subject)}</title></head>\n<body>\n${body}\n</body></html>\n`,
  };
}

/** A link into the console, or without one the token and the route that takes it. */
function step({ consoleUrl }: MailPlaces, page: string, route: string, token: string): Part[] {
  if (consoleUrl === null) {
    return [paragraph(`Send this token with ${route}:`), block(token)];
  }
  const link = `${consoleUrl.replace(/\/+$/, '')}/${page}?token=${encodeURIComponent(token)}`;
  const shown = escapeHtml(link);
  return [
    paragraph('Open this address:'),
    { text: link, html: `<p><a href="${shown}">${shown}</a></p>` },
  ];
}

function topUpWays(): Part {
  return paragraph(
    'The way to top up is PUT /users/me/auto-top-up, or a payment to the operator, who notes it (ledger pay-in).',
  );
}

function paragraph(text: string): Part {
  return { text, html: `<p>${escapeHtml(text)}</p>` };
}

function block(text: string): Part {
  return { text, html: `<pre>${escapeHtml(text)}</pre>` };
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}
