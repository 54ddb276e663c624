/** Decisions about webhooks and the events that they receive. Pure. */
import type { CreateWebhook, VersionResponse, Webhook } from '../api/api.gen.ts';
import type { Tone } from '../parts/tone.ts';

export const EVENT_TYPES = [
  'pod-create',
  'pod-rent',
  'pod-lifecycle',
  'pod-reboot',
  'pod-delete',
  'pod-fail',
  'backup',
  'restore',
  'billing',
  'notice',
  'account',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** Values of a form: one member for each event type, and names of single outcomes such as `backup.failed`. */
export type EventChoice = Record<EventType, boolean> & { outcomes: string };

export function choiceOf(events: readonly string[]): EventChoice {
  const types = Object.fromEntries(EVENT_TYPES.map((type) => [type, events.includes(type)]));
  const outcomes = events.filter((name) => name.includes('.')).join(' ');
  return { ...(types as Record<EventType, boolean>), outcomes };
}

/** Returns the events for a request; an empty list selects all events. The server rejects unknown names. */
export function eventsFrom(choice: EventChoice): NonNullable<CreateWebhook['events']> {
  const outcomes = choice.outcomes.split(/[\s,]+/).filter((name) => name !== '');
  const names = [...EVENT_TYPES.filter((type) => choice[type]), ...outcomes];
  return names as NonNullable<CreateWebhook['events']>;
}

export function describeEvents({ events }: { events: readonly string[] }): string {
  return events.length === 0 ? 'all' : events.join(', ');
}

/** The server's rule for addresses, with an example. Without the server's answer, the texts state no rule. */
export function addressRule(version: Pick<VersionResponse, 'webhook_targets'> | undefined): {
  hint: string;
  example: string;
} {
  const sent = 'The server sends each event to this address by POST.';
  switch (version?.webhook_targets) {
    case 'public':
      return {
        hint: `${sent} It must be a public https address.`,
        example: 'https://hooks.example.com/podwright',
      };
    case 'loopback':
      return {
        hint: `${sent} This marketplace runs on one computer, so it must be an address of that computer, such as http://127.0.0.1:9000.`,
        example: 'http://127.0.0.1:9000/events',
      };
    default:
      return { hint: sent, example: '' };
  }
}

export type WebhookState = 'delivering' | 'retrying' | 'paused' | 'disabled';

export function webhookStateOf(webhook: Webhook): WebhookState {
  if (webhook.enabled) return webhook.failing_since === null ? 'delivering' : 'retrying';
  return webhook.disabled_reason === null ? 'paused' : 'disabled';
}

export const WEBHOOK_TONES: Record<WebhookState, Tone> = {
  delivering: 'good',
  retrying: 'warn',
  paused: 'idle',
  disabled: 'bad',
};

/** Explains a state that is not the owner's choice; null for other states. */
export function causeOf({ enabled, disabled_reason: reason, failing_since: since }: Webhook) {
  if (reason === 'gone')
    return 'The receiver answered 410 Gone. Resume it if the address is right.';
  if (reason === 'failing') return 'Deliveries failed for days. Repair the receiver, then resume.';
  return enabled && since !== null ? 'Deliveries fail and are repeated.' : null;
}

export const DELIVERY_TONES: Record<'waiting' | 'delivered' | 'failed', Tone> = {
  waiting: 'busy',
  delivered: 'good',
  failed: 'bad',
};
