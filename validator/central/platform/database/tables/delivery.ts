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
  /** `{pod_name, node, error?}` and more. */
  payload_json: string;
  /** Its place in its account's feed: 1, 2, …; null until somebody has read the feed (events/event-feed.store.ts). */
  feed_no: number | null;
};

export type MailsTable = Stamped & {
  id: string;
  /** Either is null: whose mail it is. */
  account_id: string | null;
  provider_id: string | null;
  /** Unique: what happened once is mailed once. */
  dedupe_key: string;
  kind: string;
  to_address: string;
  /** Subject and bodies, sealed because they hold tokens; empty once nobody needs them. */
  sealed: string;
  /** `kept`: nothing sends mails here, it is read in the outbox. */
  state: 'kept' | 'waiting' | 'sent' | 'failed' | 'expired';
  due_at: number;
  /** What it says has no use from then on. */
  useful_until: number;
  attempts: number;
  last_error: string | null;
};

export type WebhooksTable = Stamped & {
  id: string;
  account_id: string;
  url: string;
  description: string;
  /** JSON array of event types; empty: all of them. */
  events_json: string;
  /** AES-256-GCM under the deployment's secret. */
  secret_sealed: string;
  /** JSON array of the secrets before rotations, each signed with as well until its time (webhook.rotation.ts). */
  replaced_json: string;
  is_enabled: Flag;
  /** Why we disabled it ourselves; null when its owner did, or nobody. */
  disabled_reason: 'gone' | 'failing' | null;
  /** Place in the account's feed of the last event that is done with. */
  after_feed_no: number;
  /** Failed attempts at the event after that, and when the next one is due. */
  attempts: number;
  retry_at: number;
  /** Since when no attempt has succeeded; null after one that has. */
  failing_since: number | null;
  /** One process at a time delivers to it: until then, whose token this is. */
  lease_until: number;
  lease_token: string | null;
};

/** The latest attempts of one event at one webhook. */
export type WebhookDeliveriesTable = Stamped & {
  id: string;
  webhook_id: string;
  event_id: string;
  event_type: string;
  state: 'waiting' | 'delivered' | 'failed';
  attempts: number;
  /** HTTP status of the last attempt; null when there was no answer. */
  status: number | null;
  error: string | null;
  duration_ms: number;
};

/** Unused tickets for streams; a used one is deleted. */
export type StreamTicketsTable = {
  ticket_hash: string;
  account_id: string;
  /** Null: for the account's own feed. */
  pod_id: string | null;
  /** The headers that proved who asked, as JSON, sealed for the place `ticket_hash`. */
  credential_sealed: string;
  expires_at: number;
};

/** One row per signed upload address. */
export type UploadsTable = {
  object_key: string;
  account_id: string;
  purpose: 'avatar' | 'feedback' | 'template_readme';
  content_type: string;
  size_bytes: number;
  created_at: number;
  /** Of the address. */
  expires_at: number;
  /** Null until it was used; stays null where the object store is another's. */
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
