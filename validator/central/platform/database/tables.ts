/**
 * All tables of the central API, in the subset of SQL that SQLite and PostgreSQL share: ids are text, times are integer
 * milliseconds UTC, money is integer micro-dollars, flags are 0 and 1, JSON is text.
 */
import type { Insertable, Kysely, Selectable, Transaction } from 'kysely';
import type { AccountTables } from './tables/accounts.ts';
import type { BackupTables } from './tables/backups.ts';
import type { DeliveryTables } from './tables/delivery.ts';
import type { ExecutorTables } from './tables/executors.ts';
import type { MarketTables } from './tables/market.ts';
import type { MeteringTables } from './tables/metering.ts';
import type { MetricTables } from './tables/metrics.ts';
import type { MoneyTables } from './tables/money.ts';
import type { PlatformTables } from './tables/platform.ts';

export type Tables = AccountTables &
  ExecutorTables &
  MarketTables &
  MoneyTables &
  MeteringTables &
  MetricTables &
  BackupTables &
  DeliveryTables &
  PlatformTables;

/** A database handle or a transaction on it: the first argument of every store function. */
export type Db = Kysely<Tables> | Transaction<Tables>;
export type Database = Kysely<Tables>;

export type Account = Selectable<Tables['accounts']>;
export type ApiKey = Selectable<Tables['api_keys']>;
export type ApiKeyRefusal = Selectable<Tables['api_key_refusals']>;
export type ApiKeyBudget = Selectable<Tables['api_key_budgets']>;
export type SshKey = Selectable<Tables['ssh_keys']>;
export type AccountSecret = Selectable<Tables['account_secrets']>;
export type PodSecretRow = Selectable<Tables['pod_secrets']>;
export type DockerCredential = Selectable<Tables['docker_credentials']>;
export type Template = Selectable<Tables['templates']>;
export type Provider = Selectable<Tables['providers']>;
export type Executor = Selectable<Tables['executors']>;
export type UnknownPod = Selectable<Tables['unknown_pods']>;
export type NewExecutor = Insertable<Tables['executors']>;
export type GpuSlot = Selectable<Tables['gpu_slots']>;
export type Pod = Selectable<Tables['pods']>;
export type Feedback = Selectable<Tables['feedback']>;
export type PodReport = Selectable<Tables['pod_reports']>;
export type SupportChannelRow = Selectable<Tables['support_channels']>;
export type EventRow = Selectable<Tables['events']>;
export type MailRow = Selectable<Tables['mails']>;
export type Upload = Selectable<Tables['uploads']>;
export type Bookmark = Selectable<Tables['bookmarks']>;
export type MachineRequest = Selectable<Tables['machine_requests']>;
export type BackupRepository = Selectable<Tables['backup_repositories']>;
export type BackupConfig = Selectable<Tables['backup_configs']>;
export type BackupLog = Selectable<Tables['backup_logs']>;
export type RestoreLog = Selectable<Tables['restore_logs']>;
export type BackupDrill = Selectable<Tables['backup_drills']>;
export type Volume = Selectable<Tables['volumes']>;
export type VolumeCopy = Selectable<Tables['volume_copies']>;
export type AuditEntry = Selectable<Tables['audit_entries']>;
export type Drift = Selectable<Tables['drift']>;
export type LedgerProof = Selectable<Tables['ledger_proofs']>;
export type DueWork = Selectable<Tables['due_work']>;
export type Notice = Selectable<Tables['notices']>;
export type NewEvent = Insertable<Tables['events']>;
export type Webhook = Selectable<Tables['webhooks']>;
export type WebhookDelivery = Selectable<Tables['webhook_deliveries']>;
export type AutoTopUpRow = Selectable<Tables['auto_topups']>;
export type CreditTransfer = Selectable<Tables['credit_transfers']>;
export type LedgerArchive = Selectable<Tables['ledger_archives']>;
export type LedgerMonth = Selectable<Tables['ledger_months']>;
export type LowBalanceMarks = Selectable<Tables['low_balance_marks']>;
export type LowBalanceThresholdRow = Selectable<Tables['low_balance_thresholds']>;
export type NotificationSettingRow = Selectable<Tables['notification_settings']>;
export type PayoutRow = Selectable<Tables['payouts']>;
export type ReferralRow = Selectable<Tables['referrals']>;
export type SimulatedCharge = Selectable<Tables['simulated_charges']>;
export type SimulatedPayout = Selectable<Tables['simulated_payouts']>;
export type TopUpRow = Selectable<Tables['topups']>;
