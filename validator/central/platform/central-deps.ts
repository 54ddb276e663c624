/** Ports and options of the central API, and the dependencies that its modules receive. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { Notifier } from './database/notifier.ts';
import type { Database } from './database/tables.ts';
import type { AllowedOrigins } from './edge/cors.ts';
import type { CentralMetrics } from './metrics/central-metrics.ts';
import type {
  AddressTable,
  Agents,
  AlphaRates,
  BackupFolder,
  BackupStorage,
  CentralMiner,
  ChatPlatform,
  CollateralFeed,
  LedgerAudit,
  Mailer,
  ObjectStore,
  Payments,
  PayoutProcessor,
  PruneRepository,
  SupportChannels,
} from './ports.ts';
import type { RateLimits } from './rate-limits/policies.ts';

export type CentralPorts = {
  db: Database;
  clock: Clock;
  random: Random;
  log: Log;
  /** 32 bytes, the same in all processes of the deployment: signs sessions and encrypts API keys at rest. */
  secret: Uint8Array;
  agents: Agents;
  /** Null or absent: mails stay in the database and can be read at GET /_local/outbox. */
  mailer?: Mailer | null;
  /** Storage of uploads; null or absent: uploads are rejected. */
  objects?: ObjectStore | null;
  /** Storage of backups; null or absent: `backupFolder` is used. Without both, backups are rejected. */
  backupStorage?: BackupStorage | null;
  backupFolder?: BackupFolder | null;
  /** Chat platform whose users can be linked to accounts; null or absent: none. */
  chat?: ChatPlatform | null;
  /** The central miner server; null or absent: none. */
  centralMiner?: CentralMiner | null;
  /** Service that creates support channels; null or absent: they exist in the database only. */
  channels?: SupportChannels | null;
  /** Frees the space of single backups; null or absent: space is freed only when a whole repository is removed. */
  pruneBackups?: PruneRepository | null;
  /** Payment processor; `simulated` moves no money. Null or absent: no payments. */
  payments?: Payments | 'simulated' | null;
  /** Processor of payouts; `simulated` moves no money. Null or absent: requested payouts wait. */
  payoutProcessor?: PayoutProcessor | 'simulated' | null;
  /** Rates of alpha tokens; null or absent: unknown. */
  alphaRates?: AlphaRates | null;
  /** Table with which the places of nodes are compared; null or absent: none. */
  addresses?: AddressTable | null;
  /** Feed of deposits; null or absent: only those that the operator records. */
  collateralFeed?: CollateralFeed | null;
  /** Audits a snapshot of the ledger beside this process's work; absent: in a transaction of `db`, for tests. */
  auditLedger?: (signal: AbortSignal) => Promise<LedgerAudit>;
  /** Metrics of requests and of the backlog; absent: none are collected. */
  metrics?: CentralMetrics | null;
  /** Absent: notifications reach this process only. */
  notifier?: Notifier;
};

export type CentralOptions = {
  /** Validators that may report verdicts. */
  validators: readonly Hotkey[];
  /** Credit in micro-dollars that an account receives once its address is verified. */
  signupCreditUusd: number;
  /** True if addresses of new accounts are verified without a mail. */
  verifyEmailAtSignup: boolean;
  /** Proxies whose X-Forwarded-For is trusted: addresses and CIDR ranges. */
  trustedProxies: readonly string[];
  /** Default: DEFAULT_LIMITS. */
  rateLimits?: RateLimits;
  /** Origins of web pages that may call the API, or `*`. Default: none. */
  corsOrigins?: AllowedOrigins;
  /** Audience that signed requests of validators must name. Default: `central`. */
  audience?: string;
  /** True if owners can read their API keys again after creation. Default: true. */
  apiKeysRetrievable?: boolean;
  /** Base URL of the console, where users verify addresses and reset passwords; without it mails contain the token. */
  consoleUrl?: string | null;
  /** Base URL of support channels that exist in the database only; null or absent: none. */
  channelUrl?: string | null;
  /** Address that receives the messages of support channels; null or absent: they stay in the database. */
  supportEmail?: string | null;
  /** Hours between two restore drills of a backup schedule's newest backup. Default: 720; 0 for none. */
  backupDrillHours?: number;
  /** Interval between two settlements of a running pod. Default: one minute. */
  meterTickMs?: number;
  /** Time limit of a launch whose image does not arrive. Default: 10 minutes; at most 2 hours. */
  launchLimitMs?: number;
  /** Time for which topped-up credit cannot be transferred. Default: one day. */
  topUpWaitMs?: number;
  /** Maximum size of a volume's data. Default: 20 GiB. */
  volumeLimitBytes?: number;
  /** URL of the documentation of checks; null or absent: none. */
  docsUrl?: string | null;
  /** Addresses that webhooks may have. Default: `public`. */
  webhookTargets?: 'public' | 'loopback';
  /** Addresses that nodes may have. Default: `public`. */
  nodePlaces?: 'public' | 'private';
  /** Argon2id parameters, memory in KiB. Default: 19 MiB and two passes. */
  passwordCost?: { memory: number; passes: number; parallelism: number };
  /** `https://host`: origin of the API in URLs that it returns. Default: the origin of the request. */
  publicOrigin?: string | null;
};

export type CentralDeps = {
  /** `db` sends notifications through `notifier`. */
  ports: CentralPorts;
  options: CentralOptions;
  notifier: Notifier;
  /** Aborts when the server stops, which ends streams and waits. */
  stopping: AbortSignal;
};
