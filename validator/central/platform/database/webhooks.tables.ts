/** Tables of webhooks: who is told of an account's events, and what came of it. */
import type { Flag, Stamped } from './columns.ts';

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

export type WebhookTables = { webhooks: WebhooksTable; webhook_deliveries: WebhookDeliveriesTable };
