/** Tables of accounts: credentials, sessions, keys and settings. */
import type { Generated } from 'kysely';
import type { Flag, Stamped } from './platform.ts';

export type AccountsTable = Stamped & {
  id: string;
  email: string;
  /** Trimmed and lower-cased; unique. */
  email_norm: string;
  email_verified_at: number | null;
  /** Requested new address, which replaces `email` once it is confirmed. */
  pending_email: string | null;
  password_hash: string;
  name: string;
  default_template_id: string | null;
  referral_code: string;
  company_name: string | null;
  avatar_url: string | null;
  disable_incoming_connections: Generated<Flag>;
  /** Hours after which new rentals end by default, by source of the request. */
  termination_hours_json: Generated<string>;
  /** When the sign-up credit was granted; it is granted once. */
  signup_credit_at: number | null;
  /** The account on the chat platform; unique. */
  chat_user_id: string | null;
  chat_username: string | null;
  referral_payout_method: Generated<'balance' | 'stripe_connect' | 'crypto'>;
  /** This column and the next are set exactly while the method is `crypto`. */
  referral_crypto_address: string | null;
  referral_crypto_network: string | null;
  /** Customer id at the payment processor; null until a payment method was stored. */
  payment_customer_id: string | null;
  /** Id of the account at the payment processor that receives payouts; unique. Null before its onboarding began. */
  payout_account_id: string | null;
  payout_onboarded_at: number | null;
  /** When the account received the operator's role; null without it. */
  operator_since: number | null;
  /** Set when the account was deleted. The row stays, because events and transfers reference it. */
  deleted_at: number | null;
};

/**
 * Addresses that have received a sign-up credit, hashed with the deployment's secret, so that no address receives it
 * twice.
 */
export type SignupCreditsTable = { email_hash: string; granted_at: number };

/** Single-use tokens sent by mail; a used token is deleted. */
export type AccountTokensTable = {
  /** SHA-256 hex. */
  token_hash: string;
  account_id: string;
  purpose: 'verify-email' | 'reset-password';
  /** Address to which the token was sent, and which the token verifies. */
  email_norm: string;
  created_at: number;
  expires_at: number;
};

/** Unfinished links to the chat platform. A used row is deleted. */
export type ChatLinkStatesTable = {
  state_hash: string;
  /** Id of an account or a provider. */
  owner_id: string;
  /** The PKCE verifier, sealed. */
  verifier_sealed: string;
  created_at: number;
  expires_at: number;
};

/** Revocable sessions; the JWT contains the id. */
export type SessionsTable = {
  id: string;
  kind: 'user' | 'portal';
  /** Account id or provider id, by kind. */
  subject_id: string;
  created_at: number;
  expires_at: number;
  revoked_at: number | null;
  /** User-Agent of the log-in, shortened; null if the request had none. */
  client: string | null;
  /** Session whose ticket began this one; null after a log-in. The sessions end together. */
  creator_session_id: string | null;
};

/** Single-use tickets that begin a session; a used ticket is deleted. */
export type LogInTicketsTable = {
  /** SHA-256 hex. */
  ticket_hash: string;
  /** Session that created the ticket. The ticket is invalid once this session is revoked or expired. */
  session_id: string;
  kind: SessionsTable['kind'];
  subject_id: string;
  created_at: number;
  expires_at: number;
};

export type ApiKeysTable = Stamped & {
  id: string;
  account_id: string;
  name: string;
  /** First 10 and last 5 characters, for the masked display. */
  prefix: string;
  suffix: string;
  /** SHA-256 hex; unique. */
  key_hash: string;
  /** AES-256-GCM with the deployment's secret. */
  key_sealed: string;
  is_active: Flag;
  /** JSON list of KeyScope, fixed at creation; null for all scopes. */
  scopes_json: string | null;
  expires_at: number | null;
  last_used_at: number | null;
  deleted_at: number | null;
};

/** Requests that a budget of an API key refused, the newest 100 of each key. Amounts are in micro-dollars. */
export type ApiKeyRefusalsTable = {
  id: string;
  api_key_id: string;
  budget_window: 'day' | 'total';
  /** Method and path, with the names of path parameters. */
  route: string;
  /** Amount that the request needed. */
  amount_uusd: number;
  budget_uusd: number;
  spent_uusd: number;
  created_at: number;
};

export type SshKeysTable = Stamped & {
  id: string;
  account_id: string;
  name: string;
  public_key: string;
  /** `SHA256:…`; unique per account. */
  fingerprint: string;
};

/** Logins at image registries, for private images. */
export type DockerCredentialsTable = Stamped & {
  id: string;
  account_id: string;
  /** Empty if the account stated none. */
  name: string;
  docker_username: string;
  /** AES-256-GCM with the deployment's secret. */
  password_sealed: string;
};

/** Values that pods receive as files. */
export type AccountSecretsTable = Stamped & {
  id: string;
  account_id: string;
  /** Unique per account. */
  name: string;
  /** AES-256-GCM with the deployment's secret. */
  value_sealed: string;
};

/** Copies of the secrets that a pod was rented with; deleted when the pod ends. */
export type PodSecretsTable = { pod_id: string; name: string; value_sealed: string };

/** Kinds of mails that an account receives. An account without a row receives all kinds. */
export type NotificationSettingsTable = Stamped & {
  account_id: string;
  id: string;
  low_balance: Flag;
  notice_period: Flag;
  pod_failed: Flag;
  scheduled_removal: Flag;
  machine_request: Flag;
};

export type AccountTables = {
  accounts: AccountsTable;
  signup_credits: SignupCreditsTable;
  account_tokens: AccountTokensTable;
  chat_link_states: ChatLinkStatesTable;
  sessions: SessionsTable;
  log_in_tickets: LogInTicketsTable;
  api_keys: ApiKeysTable;
  api_key_refusals: ApiKeyRefusalsTable;
  ssh_keys: SshKeysTable;
  docker_credentials: DockerCredentialsTable;
  account_secrets: AccountSecretsTable;
  pod_secrets: PodSecretsTable;
  notification_settings: NotificationSettingsTable;
};
