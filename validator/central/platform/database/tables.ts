/**
 * Every table of the central API. Portable subset of SQLite and PostgreSQL: ids as text, times as integer
 * milliseconds UTC, money as integer micro-dollars, flags as 0/1, JSON as text (style reference B.5).
 */
import type { Insertable, Kysely, Selectable, Transaction } from 'kysely';
import type {
  AccountsTable,
  AccountTables,
  ApiKeysTable,
  BookmarksTable,
  DockerCredentialsTable,
  MachineRequestsTable,
  SshKeysTable,
  TemplatesTable,
  UploadsTable,
} from './accounts.tables.ts';
import type { AroundBalanceTables } from './around-balance.tables.ts';
import type {
  BackupConfigsTable,
  BackupDrillsTable,
  BackupLogsTable,
  BackupRepositoriesTable,
  BackupTables,
  RestoreLogsTable,
  VolumeCopiesTable,
  VolumesTable,
} from './backups.tables.ts';
import type {
  ExecutorsTable,
  ExecutorTables,
  GpuSlotsTable,
  ProvidersTable,
} from './executors.tables.ts';
import type { LedgerTables } from './ledger.tables.ts';
import type { MeteringTables } from './metering.tables.ts';
import type { NoticesTable, NoticeTables } from './notices.tables.ts';
import type { PayoutTables } from './payouts.tables.ts';
import type {
  EventsTable,
  FeedbackTable,
  PodsTable,
  PodTables,
  SupportChannelsTable,
} from './pods.tables.ts';
import type { MailsTable, ProcessTables } from './processes.tables.ts';
import type { DueWorkTable, ScheduleTables } from './schedule.tables.ts';
import type { ValidatorAccountTables } from './validator-accounts.tables.ts';
import type { WebhookDeliveriesTable, WebhooksTable, WebhookTables } from './webhooks.tables.ts';

export type Tables = AccountTables &
  ExecutorTables &
  PodTables &
  BackupTables &
  ProcessTables &
  LedgerTables &
  MeteringTables &
  ScheduleTables &
  AroundBalanceTables &
  PayoutTables &
  NoticeTables &
  WebhookTables &
  ValidatorAccountTables;

/** What every store function takes first: the database, or the transaction it runs in. */
export type Db = Kysely<Tables> | Transaction<Tables>;
export type Database = Kysely<Tables>;

export type Account = Selectable<AccountsTable>;
export type ApiKey = Selectable<ApiKeysTable>;
export type SshKey = Selectable<SshKeysTable>;
export type DockerCredential = Selectable<DockerCredentialsTable>;
export type Template = Selectable<TemplatesTable>;
export type Provider = Selectable<ProvidersTable>;
export type Executor = Selectable<ExecutorsTable>;
export type NewExecutor = Insertable<ExecutorsTable>;
export type GpuSlot = Selectable<GpuSlotsTable>;
export type Pod = Selectable<PodsTable>;
export type Feedback = Selectable<FeedbackTable>;
export type SupportChannelRow = Selectable<SupportChannelsTable>;
export type EventRow = Selectable<EventsTable>;
export type MailRow = Selectable<MailsTable>;
export type Upload = Selectable<UploadsTable>;
export type Bookmark = Selectable<BookmarksTable>;
export type MachineRequest = Selectable<MachineRequestsTable>;
export type BackupRepository = Selectable<BackupRepositoriesTable>;
export type BackupConfig = Selectable<BackupConfigsTable>;
export type BackupLog = Selectable<BackupLogsTable>;
export type RestoreLog = Selectable<RestoreLogsTable>;
export type BackupDrill = Selectable<BackupDrillsTable>;
export type Volume = Selectable<VolumesTable>;
export type VolumeCopy = Selectable<VolumeCopiesTable>;
export type DueWork = Selectable<DueWorkTable>;
export type Notice = Selectable<NoticesTable>;
export type NewEvent = Insertable<EventsTable>;
export type Webhook = Selectable<WebhooksTable>;
export type WebhookDelivery = Selectable<WebhookDeliveriesTable>;
