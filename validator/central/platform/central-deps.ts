/** Ports and options of the central API, and the dependencies that its modules receive. */
import type { HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { ClockTrust, GuardedClock } from '#shared/runtime/guarded-clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { Verify } from '#shared/signing/sr25519.ts';
import type { DatabaseHealth } from '../../database/database-watch.ts';
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
  /**
   * Guard that provides `clock`; the caller starts and stops it. If it is absent, the central API creates a guard that
   * checks `clock` but does not correct it.
   */
  guard?: GuardedClock;
  random: Random;
  log: Log;
  /** 32 bytes, the same in all processes of the deployment: signs sessions and encrypts API keys at rest. */
  secret: Uint8Array;
  agents: Agents;
  /** Null or absent: mails remain in the database and can be read at GET /_local/outbox. */
  mailer?: Mailer | null;
  /** Storage of uploads; null or absent: uploads are rejected. */
  objects?: ObjectStore | null;
  /** Storage of backups; null or absent: `backupFolder` is used. Without both, backups are rejected. */
  backupStorage?: BackupStorage | null;
  backupFolder?: BackupFolder | null;
  /** Chat platform whose users can be linked to accounts; null or absent if there is no chat platform. */
  chat?: ChatPlatform | null;
  /** Central miner server; null or absent if there is none. */
  centralMiner?: CentralMiner | null;
  /** Service that creates support channels. Null or absent: channels exist only in the database. */
  channels?: SupportChannels | null;
  /** Frees the space of single backups. Null or absent: space is freed only when a whole repository is removed. */
  pruneBackups?: PruneRepository | null;
  /** Payment processor; `simulated` moves no money. Null or absent: payments are not possible. */
  payments?: Payments | 'simulated' | null;
  /** Processor of payouts; `simulated` moves no money. Null or absent: requested payouts are not paid. */
  payoutProcessor?: PayoutProcessor | 'simulated' | null;
  /** Rates of alpha tokens; null or absent if they are unknown. */
  alphaRates?: AlphaRates | null;
  /** Table that the places of nodes are compared with; null or absent: places are not compared with a table. */
  addresses?: AddressTable | null;
  /** Feed of deposits. Null or absent: there are only the deposits that the operator records. */
  collateralFeed?: CollateralFeed | null;
  /**
   * Audits a snapshot of the ledger, concurrently with this process. Absent in tests: then a transaction of `db` is
   * used.
   */
  auditLedger?: (signal: AbortSignal) => Promise<LedgerAudit>;
  /**
   * Adds routes below /api/_local, and hooks, for a marketplace on this machine; null or absent: there are none. The
   * description of the interface omits the routes.
   */
  installLocal?: ((server: HttpServer, clock: Clock) => void) | null;
  /** Verifies the requests of validators. Default: sr25519. A simulation signs its requests faster. */
  verifyValidator?: Verify;
  /** Metrics of requests and of the backlog; null or absent: no metrics are collected. */
  metrics?: CentralMetrics | null;
  /** State of the database; absent in tests: the database counts as intact. */
  databaseHealth?: DatabaseHealth;
  /** Absent: notifications do not reach other processes. */
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
  /**
   * Base URL of the console, where users verify addresses and reset passwords. If it is null or absent, mails contain
   * the token.
   */
  consoleUrl?: string | null;
  /** Folder of the built console, which the central API serves at `/`; null or absent: it serves none. */
  consoleFolder?: string | null;
  /** Base URL of support channels that exist only in the database; null or absent: these channels have no URL. */
  channelUrl?: string | null;
  /** Address that receives the messages of support channels. Null or absent: the messages remain in the database. */
  supportEmail?: string | null;
  /**
   * Hours between two restore drills of a backup schedule's newest backup. Default: 720. With 0 there are no drills.
   */
  backupDrillHours?: number;
  /** Interval between two passes of the metering job over the running pods. Default: one minute. */
  meterTickMs?: number;
  /** Interval between two postings of a running pod to the ledger. Default: one hour. */
  meterPostingMs?: number;
  /** Time limit of a launch while no part of its image arrives. Default: 10 minutes; at most 2 hours. */
  launchLimitMs?: number;
  /** Pause between two syncs of a node whose pods need nothing. Default: 10 seconds; at most one minute. */
  syncIntervalMs?: number;
  /** Maximum number of nodes that a process syncs at once. Default: 64. */
  syncConcurrency?: number;
  /**
   * Shortest pause of the jobs that poll for rows of other processes. Default: the pause of each job, 0.3 to 60 seconds.
   * A simulation sets it, because it polls for months of time. Only for a process that is alone on its database.
   */
  pollMs?: number;
  /** Pause between two syncs of a node with a pod in transition. Default: 150 milliseconds. */
  busySyncMs?: number;
  /** Longest pause between two syncs of a node that does not answer. Default: 30 seconds. */
  unreachableSyncMs?: number;
  /** Interval between two comparisons of the pods of all nodes with the database. Default: ten minutes. */
  surveyIntervalMs?: number;
  /** False: no samples are collected from agents. Default: true. */
  collectsMetrics?: boolean;
  /** Time for which topped-up credit cannot be transferred. Default: one day. */
  topUpWaitMs?: number;
  /** Maximum size of a volume's data. Default: 20 GiB. */
  volumeLimitBytes?: number;
  /** URL of the documentation of checks; null or absent if there is none. */
  docsUrl?: string | null;
  /** Addresses that webhooks may have. Default: `public`. */
  webhookTargets?: 'public' | 'loopback';
  /** Addresses that nodes may have. Default: `public`. */
  nodePlaces?: 'public' | 'private';
  /**
   * True if private nodes and image registries may have loopback addresses, because the API itself listens on loopback
   * and only programs of this host reach it. Default: false.
   */
  allowsLoopback?: boolean;
  /**
   * Lifetime of sessions and of log-in tickets. Default: seven days and one hour. A simulation sets it, because its time
   * passes faster.
   */
  sessionMs?: number;
  /** Argon2id parameters, memory in KiB. Default: 19 MiB and two passes. */
  passwordCost?: { memory: number; passes: number; parallelism: number };
  /** `https://host`: origin of the API in URLs that it returns. Default: the origin of the request. */
  publicOrigin?: string | null;
};

export type CentralDeps = {
  /** Its `db` sends notifications through `notifier`. */
  ports: CentralPorts;
  options: CentralOptions;
  notifier: Notifier;
  /** Suspends deletions, expiries, schedules and verdicts while the clock is suspect. */
  trust: ClockTrust;
  /** Aborts when the server stops. Streams and waits then end. */
  stopping: AbortSignal;
};
