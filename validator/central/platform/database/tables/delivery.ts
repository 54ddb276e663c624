/** Tables of events, mails, webhooks, stream tickets and uploads. */
import type { Generated } from 'kysely';
import type { Flag, Stamped } from './platform.ts';

export type EventsTable = {
  seq: Generated<number>;
  id: string;
  account_id: string;
  pod_id: string | null;
  event_type: string;
  sub_event_type: string;
  created_at: number;
  actor_auth: string;
  actor_api_key_id: string | null;
  request_id: string | null;
  from_status: string | null;
  to_status: string | null;
  reason: string | null;
  /** `{pod_name, node, error?}` and other members. */
  payload_json: string;
  /** Position in the account's feed: 1, 2, …; null until the feed is read (delivery/events/event-feed.store.ts). */
  feed_no: number | null;
};

export type MailsTable = Stamped & {
  id: string;
  /** Recipient: either account_id or provider_id is set. */
  account_id: string | null;
  provider_id: string | null;
  /** Unique, so that only one mail is sent for an event. */
  dedupe_key: string;
  kind: string;
  to_address: string;
  /**
   * Subject and bodies, encrypted because they contain tokens. Empty once the mail was sent, has failed or has expired.
   */
  sealed: string;
  /** `kept`: no mail server is configured, and the mail can be read in the outbox. */
  state: 'kept' | 'waiting' | 'sent' | 'failed' | 'expired';
  due_at: number;
  /** Time at which the mail expires if it was not sent. */
  useful_until: number;
  attempts: number;
  last_error: string | null;
};

export type WebhooksTable = Stamped & {
  id: string;
  account_id: string;
  url: string;
  description: string;
  /** JSON array of event types; empty for all. */
  events_json: string;
  /** AES-256-GCM with the deployment's secret. */
  secret_sealed: string;
  /** JSON array of replaced secrets. Deliveries are also signed with these secrets until they expire. */
  replaced_json: string;
  is_enabled: Flag;
  /** Reason why the delivery job disabled the webhook; null if the owner disabled the webhook, or if it is enabled. */
  disabled_reason: 'gone' | 'failing' | null;
  /** Position in the account's feed of the last event that was delivered or dropped. */
  after_feed_no: number;
  /** Number of failed attempts to deliver the next event, and the time of the next attempt. */
  attempts: number;
  retry_at: number;
  /** First failure since the last success; null after a success. */
  failing_since: number | null;
  /** End of the lease. Until then, only the process that has `lease_token` delivers. */
  lease_until: number;
  lease_token: string | null;
};

/** Attempts to deliver one event to one webhook. */
export type WebhookDeliveriesTable = Stamped & {
  id: string;
  webhook_id: string;
  event_id: string;
  event_type: string;
  state: 'waiting' | 'delivered' | 'failed';
  attempts: number;
  /** HTTP status of the last attempt; null if there was no response. */
  status: number | null;
  error: string | null;
  duration_ms: number;
};

/** Stream tickets that were not used yet. A ticket is deleted when it is used. */
export type StreamTicketsTable = {
  ticket_hash: string;
  account_id: string;
  /** Null for the account's event stream. */
  pod_id: string | null;
  /** The caller's credential headers as JSON, sealed for `ticket_hash`. */
  credential_sealed: string;
  expires_at: number;
};

/** One row per signed upload URL. */
export type UploadsTable = {
  object_key: string;
  account_id: string;
  purpose: 'avatar' | 'feedback' | 'template_readme';
  content_type: string;
  size_bytes: number;
  created_at: number;
  /** Expiry of the URL. */
  expires_at: number;
  /** Time of the upload; null before the upload, and always null with an external object store. */
  stored_at: number | null;
};

export type DeliveryTables = {
  events: EventsTable;
  mails: MailsTable;
  webhooks: WebhooksTable;
  webhook_deliveries: WebhookDeliveriesTable;
  stream_tickets: StreamTicketsTable;
  uploads: UploadsTable;
};
