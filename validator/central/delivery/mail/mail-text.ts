/** Subjects and bodies of all mails, as plain text and as escaped HTML. Pure. */

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
  | 'pod-report'
  | 'reported-node'
  | 'webhook-disabled'
  | 'support-message';

/** URLs used in mails. The URLs come from the configuration, never from a request. */
export type MailPlaces = {
  /** Base URL of a console with the pages /verify-email and /reset-password; null if there is none. */
  consoleUrl: string | null;
};

type Part = { text: string; html: string };

export function verificationMail(places: MailPlaces, token: string): MailContent {
  return mail('Confirm your e-mail address', [
    paragraph('This address was entered for an account at Podwright.'),
    ...step(places, 'verify-email', 'POST /auth/verify-email', token),
    paragraph('Valid once, for 24 hours. Ignore this mail if you did not enter the address.'),
  ]);
}

export function passwordResetMail(places: MailPlaces, token: string): MailContent {
  return mail('Reset your password', [
    paragraph('A password reset was requested for your account at Podwright.'),
    ...step(places, 'reset-password', 'POST /users/reset-password', token),
    paragraph('Valid once, for one hour. Ignore this mail if you did not request a reset.'),
  ]);
}

export function passwordChangedMail(): MailContent {
  return mail('Your password was changed', [
    paragraph('The password of your account at Podwright was changed. Other sessions have ended.'),
    paragraph('If you did not change the password, reset it now and check your API keys.'),
  ]);
}

/** Sent to the account's present address. */
export function emailChangeRequestedMail(newAddress: string): MailContent {
  return mail('A change of your e-mail address was requested', [
    paragraph(
      `Your account at Podwright will have the address ${newAddress} as soon as that address is confirmed.`,
    ),
    paragraph(
      'If you did not request this, reset your password now: this cancels the change and ends all sessions.',
    ),
  ]);
}

/** Sent to the account's previous address. */
export function emailChangedMail(newAddress: string): MailContent {
  return mail('Your e-mail address was changed', [
    paragraph(`Your account at Podwright now has the address ${newAddress}.`),
    paragraph(
      'If you did not change the address, contact support: you can no longer log in with this address.',
    ),
  ]);
}

/** `left`: balance in dollars. `runway`: `3 h 12 min left`, or null while nothing runs. */
export function lowBalanceMail(left: string, runway: string | null): MailContent {
  return mail(`Your balance is low: ${runway ?? left}`, [
    paragraph(`Your account at Podwright has ${left} left.`),
    ...(runway === null ? [] : [paragraph(`At the present cost of your pods: ${runway}.`)]),
    paragraph(
      'Pods are stopped when the balance is used up. Top up, or delete pods that you do not need.',
    ),
    topUpWays(),
    paragraph(
      'You receive this mail again only after a top-up, or after the balance was well above the threshold. ' +
        'Set the threshold with PUT /users/me/low-balance-threshold. Turn these mails off with PUT /users/me/notification.',
    ),
  ]);
}

/** `reason`: detail of the pod's event. */
export function podFailedMail(podName: string, reason: string): MailContent {
  return mail(`Your pod ${podName} failed`, [
    paragraph(`Your pod ${podName} at Podwright failed: ${reason}`),
    paragraph(
      'GET /pods/{id}/events shows what happened. You are not charged while the pod does not run.',
    ),
  ]);
}

/** `at`: time of the removal, UTC. */
export function scheduledRemovalMail(podName: string, at: string): MailContent {
  return mail(`Your pod ${podName} will be removed`, [
    paragraph(`Your pod ${podName} at Podwright will be removed at ${at} UTC, with its data.`),
    paragraph(
      'To keep the pod, cancel the removal with DELETE /pods/{id}/schedule-removal, or choose another time.',
    ),
  ]);
}

/** A pod with idle shutdown. Times are UTC. */
export type IdlePod = {
  podId: string;
  podName: string;
  /** `idle_shutdown_minutes` of the pod. */
  minutes: number;
  stopsAt: string;
  removedAt: string;
};

export function idleShutdownMail(pod: IdlePod): MailContent {
  const { podId, podName, minutes, stopsAt, removedAt } = pod;
  return mail(`Your pod ${podName} will be stopped because it is idle`, [
    paragraph(
      `Your pod ${podName} at Podwright is idle. It is set to stop after ${minutes} minutes without use. ` +
        `The pod will be stopped at ${stopsAt} UTC and removed with its data at ${removedAt} UTC.`,
    ),
    paragraph(
      `To keep the pod, use it before it is stopped, or change the minutes before it is removed: PATCH /pods/${podId} ` +
        'with {"idle_shutdown_minutes": …}, or null to turn idle shutdown off.',
    ),
    paragraph(
      'You receive this mail only once until the pod is used again. If the use of the pod cannot be measured for a while, the pod is stopped later.',
    ),
  ]);
}

export function topUpsSuspendedMail(reason: string): MailContent {
  return mail('Your auto top-up is suspended', [
    paragraph(`The auto top-up of your account at Podwright is suspended: ${reason}.`),
    paragraph(
      'Pods continue to run while your balance lasts. Check the payment method, then enable the auto top-up again with PUT /users/me/auto-top-up.',
    ),
  ]);
}

/** `host`: host of the webhook's URL. */
export function webhookDisabledMail(host: string, reason: 'gone' | 'failing'): MailContent {
  const why =
    reason === 'gone'
      ? 'the receiver answered with status 410 (gone)'
      : 'all deliveries have failed for five days';
  return mail('A webhook was disabled', [
    paragraph(`Your webhook at ${host} was disabled, because ${why}.`),
    paragraph(
      'No event is lost: enable the webhook with PATCH /webhooks/{id}, and delivery resumes where it stopped.',
    ),
  ]);
}

/** `minutes`: time until the pods are stopped at the present cost. */
export function balanceRunningOutMail(minutes: number): MailContent {
  return mail('Your balance is nearly used up', [
    paragraph(
      `At the present cost, your balance will be used up in ${minutes} minutes. Then your pods are stopped.`,
    ),
    paragraph('Top up to keep the pods running.'),
    topUpWays(),
  ]);
}

export function balanceExhaustedMail(podNames: readonly string[]): MailContent {
  return mail('Your pods were stopped', [
    paragraph('Your balance is used up. These pods were stopped:'),
    block(podNames.join('\n')),
    paragraph(
      'Their data is kept for ten minutes. The pods start again if you top up within this time.',
    ),
    topUpWays(),
  ]);
}

/** A provider's notice, for a renter with pods on the node. */
export type NoticeForRenter = {
  node: string;
  /** Start time, as the provider wrote it. */
  startText: string;
  /** Duration of a maintenance; null if the node is removed for good. */
  minutes: number | null;
  reason: string | null;
  podNames: readonly string[];
};

/** Announces a maintenance or a removal. */
export function noticeSetMail(notice: NoticeForRenter): MailContent {
  const { node, startText, minutes, reason } = notice;
  const [subject, what] =
    minutes === null
      ? [
          `Node ${node} will be removed`,
          `The provider will remove the node ${node} for good at ${startText}. Your pods on this node end at that time: save your data before.`,
        ]
      : [
          `Maintenance of node ${node}`,
          `The provider has announced ${minutes} minutes of maintenance of the node ${node} from ${startText}. Your pods are kept. You are not charged while the node is unreachable during the maintenance.`,
        ];
  return mail(subject, [
    paragraph(what),
    ...(reason === null ? [] : [paragraph(`The provider's reason: ${reason}`)]),
    paragraph(podsOf(notice)),
  ]);
}

export function noticeCancelledMail(notice: NoticeForRenter): MailContent {
  const { node, startText, minutes } = notice;
  const what = minutes === null ? 'removal' : 'maintenance';
  return mail(`Node ${node}: ${what} cancelled`, [
    paragraph(`The provider has cancelled the ${what} of the node ${node} at ${startText}.`),
    paragraph(podsOf(notice)),
  ]);
}

export function requestFulfilledMail(gpuClass: string, node: string): MailContent {
  return mail(`Your machine request: ${gpuClass}`, [
    paragraph(`The node ${node} was added for your machine request of ${gpuClass}.`),
    paragraph(
      'Find the node with GET /executors?machine_request_id=…, and rent it while it is free.',
    ),
  ]);
}

/** Sent to a provider that subscribes to machine requests for this GPU type. */
export function requestOfferedMail(requestId: string, gpuType: string): MailContent {
  return mail(`Machine request: ${gpuType}`, [
    paragraph(`A renter requests a node with ${gpuType}, to which you subscribe.`),
    paragraph(
      `Providers with a verified node can read the request at GET /machine-requests/${requestId} of the portal.`,
    ),
  ]);
}

/** Sent to the renter when a report on a pod has ended. */
export function podReportMail(report: {
  podName: string;
  /** `confirmed`, `not_confirmed` or `expired`. */
  state: string;
  /** Shortfall that the validator found; null for none. */
  shortfall: string | null;
  /** Amount with currency. */
  refund: string;
}): MailContent {
  const { podName, state, shortfall, refund } = report;
  const found = shortfall === null ? '' : ` The validator found: ${shortfall}.`;
  const texts: Record<string, string> = {
    confirmed: `Your report on the pod ${podName} was confirmed.${found} Refund: ${refund}.`,
    not_confirmed: `Your report on the pod ${podName} was not confirmed: a validator examined the node and found what was offered.`,
  };
  const expired = `Your report on the pod ${podName} has expired: no validator could examine the node in time, or the findings contradict each other.`;
  return mail(`Your report on ${podName}`, [
    paragraph(texts[state] ?? expired),
    paragraph('GET /pod-reports returns the signed evidence.'),
  ]);
}

/** Sent to the provider of a node when a report on the node was confirmed. */
export function reportedNodeMail(report: {
  node: string;
  reason: string;
  shortfall: string | null;
  refund: string;
}): MailContent {
  const { node, reason, shortfall, refund } = report;
  const found = shortfall === null ? '' : ` The validator found: ${shortfall}.`;
  return mail(`A report on your node ${node} was confirmed`, [
    paragraph(`A renter reported a pod on the node ${node} (${reason}).${found}`),
    paragraph(
      `The renter is refunded ${refund}, of which your earnings bear the provider's share. The node cannot be rented until a test rental passes a full check interval later.`,
    ),
  ]);
}

/** Sent to the operator's support when a renter writes in the support channel of a pod. */
export function supportMessageMail(message: {
  channel: string;
  podId: string;
  podName: string;
  /** The renter's address. */
  from: string;
  topic: string | null;
  text: string;
}): MailContent {
  const { channel, podId, podName, from, topic, text } = message;
  return mail(`Support ${channel}: ${topic ?? podName}`, [
    paragraph(`${from} wrote about the pod ${podName} (${podId}):`),
    block(text),
    paragraph(`Answer to ${from}, or in the channel ${channel}.`),
  ]);
}

/** Maximum number of pods that a mail names; the mail states the number of others. */
const MAX_NAMED = 20;

function podsOf({ podNames }: NoticeForRenter): string {
  const more = podNames.length - MAX_NAMED;
  const rest = more > 0 ? ` and ${more} more` : '';
  return `Your pods on this node: ${podNames.slice(0, MAX_NAMED).join(', ')}${rest}.`;
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

/** Returns a link to the console. Without a console, returns the token and the route that accepts the token. */
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
    'To top up, use PUT /users/me/auto-top-up, or pay the operator, who records the payment (ledger pay-in).',
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
