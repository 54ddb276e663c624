/** Ports and options of the central API, and the dependencies that every module composes its parts from. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { Notifier } from './database/notifier.ts';
import type { Database } from './database/tables.ts';
import type { AllowedOrigins } from './edge/cors.ts';
import type { CentralMetrics } from './metrics/central-metrics.ts';
import type {
  Agents,
  AlphaRates,
  BackupFolder,
  BackupStorage,
  CentralMiner,
  ChatPlatform,
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
  /** 32 bytes, the deployment's own: signs sessions and seals API keys at rest. */
  secret: Uint8Array;
  agents: Agents;
  /** Null or absent: mails are kept in the database, to be read at GET /_local/outbox. */
  mailer?: Mailer | null;
  /** Where uploads lie; null or absent: nothing can be uploaded. */
  objects?: ObjectStore | null;
  /** Where backups lie; null or absent: in `backupFolder`, and without that nothing can be backed up. */
  backupStorage?: BackupStorage | null;
  backupFolder?: BackupFolder | null;
  /** The chat platform that accounts can be linked to; null or absent: none. */
  chat?: ChatPlatform | null;
  /** The central miner server; null or absent: none. */
  centralMiner?: CentralMiner | null;
  /** Support channels; null or absent: they are kept in the database alone. */
  channels?: SupportChannels | null;
  /** Frees the space of single backups; null or absent: only whole repositories go. */
  pruneBackups?: PruneRepository | null;
  /** The payment processor; `simulated`: one that moves no money. Null or absent: nothing can be paid. */
  payments?: Payments | 'simulated' | null;
  /** Who pays out; `simulated`: one that moves no money. Null or absent: what is requested waits. */
  payoutProcessor?: PayoutProcessor | 'simulated' | null;
  /** Rates of alpha tokens; null or absent: nobody knows any. */
  alphaRates?: AlphaRates | null;
  /** What counts requests and shows the backlog; absent: nobody asks for it. */
  metrics?: CentralMetrics | null;
  /** Absent: notifies within this process. */
  notifier?: Notifier;
};

export type CentralOptions = {
  /** Validators that may report verdicts. */
  validators: readonly Hotkey[];
  /** Micro-dollars granted once the address is verified. */
  signupCreditUusd: number;
  /** Whether new addresses count as verified without a mail. */
  verifyEmailAtSignup: boolean;
  /** Proxies whose X-Forwarded-For is believed: addresses and CIDR ranges. */
  trustedProxies: readonly string[];
  /** How many requests each caller may send; those of the reference when absent. */
  rateLimits?: RateLimits;
  /** Web pages that may call: origins, or `*`; none when absent. */
  corsOrigins?: AllowedOrigins;
  /** Whom canonically signed requests of validators must name; `central` when absent. */
  audience?: string;
  /** Whether owners can read their API keys again after making them; true when absent. */
  apiKeysRetrievable?: boolean;
  /** Where people verify addresses and reset passwords; without it mails hold the bare token. */
  consoleUrl?: string | null;
  /** Below which the support channels that the database keeps are shown; null or absent: nowhere. */
  channelUrl?: string | null;
  /** Hours between two drills of a schedule's newest backup, 720 when absent; 0: none by themselves. */
  backupDrillHours?: number;
  /** Between two settlements of a running pod; a minute when absent. */
  meterTickMs?: number;
  /** For so long topped-up credit is not transferable; a day when absent. */
  topUpWaitMs?: number;
  /** What the data of each volume may come to; 20 GiB when absent. */
  volumeLimitBytes?: number;
  /** Where people read what checks are about; null or absent: nowhere. */
  docsUrl?: string | null;
  /** Where webhooks may lead; `public` when absent. */
  webhookTargets?: 'public' | 'loopback';
  /** Where nodes may be; `public` when absent. */
  nodePlaces?: 'public' | 'private';
  /** Argon2id parameters, memory in KiB. Default: 19 MiB and two passes. */
  passwordCost?: { memory: number; passes: number; parallelism: number };
  /** `https://host`: our own origin in addresses that we give away; that of the request when absent. */
  publicOrigin?: string | null;
};

export type CentralDeps = {
  /** `db` notifies through `notifier`. */
  ports: CentralPorts;
  options: CentralOptions;
  notifier: Notifier;
  /** Aborts when the server stops: streams and waits end on it. */
  stopping: AbortSignal;
};
