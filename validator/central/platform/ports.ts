/** Ports of the central API to external services. Adapters are in adapters/. */
import type { Readable } from 'node:stream';
import type { WebSocket } from 'ws';
import type { z } from 'zod';
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { RepositoryAccess } from '#shared/api/agent/operations.ts';
import type { TerminalQuery } from '#shared/api/agent/terminal.ts';
import type {
  CheckRequest,
  HealthReport,
  RewardQuery,
  RewardShares,
} from '#shared/api/central/validator-routes.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { SignedDigest } from '#shared/updates/update-manifest.ts';
import type { Attempt } from '../delivery/webhooks/webhook.state.ts';
import type { AlphaSubnet } from '../money/alpha/alpha.schemas.ts';
import type { PayoutMethod } from '../money/payouts/payout.state.ts';

/** `requestId` identifies the terminal in the logs of all processes that relay it. */
export type TerminalOptions = { query: TerminalQuery; requestId: string; signal: AbortSignal };

/** Agents, reached through the gateway of a validator. */
export type Agents = {
  /** Hotkey that signs commands. Gateways accept commands of this hotkey only. */
  hotkey: Hotkey;
  /** `hotkey`: the validator that runs the gateway. Agents must trust it. */
  gateway: { host: string; port: number; hotkey: Hotkey };
  /**
   * Returns a client for an agent. Calls reject with `upstream_unavailable` if the gateway or the agent does not
   * respond.
   */
  clientOf(executorId: string): AgentClient;
  /** Opens a pod's terminal, paused. Rejects with the node's error or with `upstream_unavailable`. */
  terminalOf(executorId: string, podId: string, options: TerminalOptions): Promise<WebSocket>;
  /** Requests an immediate check of the executor from the validator. Rejects with `upstream_unavailable`. */
  checkNow(executorId: string, request: CheckRequest): Promise<HealthReport>;
  /** Returns the digest of the agent release, signed by the validator. Rejects with `upstream_unavailable`. */
  signedDigest(): Promise<SignedDigest>;
  /** Returns the estimated share of rewards for a node of this kind. Rejects with `upstream_unavailable`. */
  rewardShares(question: RewardQuery): Promise<RewardShares>;
  /**
   * Returns a record of the validator (`shared/api/central/validator-records.ts`). `path` has no prefix. Rejects with
   * `not_found`; rejects with `upstream_unavailable` if the validator does not respond in time or the response has
   * another form.
   */
  record<T>(path: string, schema: z.ZodType<T>): Promise<T>;
};

/** Mail to one address. `id` is the same for all attempts. */
export type OutgoingMail = { id: string; to: string; subject: string; text: string; html: string };

export type Mailer = {
  /** Sends a mail. Rejects with MailRefused if a retry cannot succeed, otherwise with another error. */
  send(mail: OutgoingMail): Promise<void>;
  close(): Promise<void>;
};

/** The mail server permanently rejected this mail. */
export class MailRefused extends Error {
  override name = 'MailRefused';
}

/** One message to a webhook. */
export type WebhookRequest = { url: string; headers: Record<string, string>; body: string };

/**
 * Sends the request once, to an allowed address, and does not follow redirects. Resolves also after a failure; rejects
 * only when `signal` aborts.
 */
export type PostWebhook = (request: WebhookRequest, signal: AbortSignal) => Promise<Attempt>;

/** Upload of a file with exactly this size and type. */
export type RemoteUpload = {
  key: string;
  contentType: string;
  sizeBytes: number;
  lifetimeS: number;
};

/** An external object store. */
export type RemoteObjects = {
  /** Returns a URL that accepts the object by PUT with these headers. `publicUrl` is the public URL of the object. */
  sign(
    upload: RemoteUpload,
  ): Promise<{ url: string; headers: Record<string, string>; publicUrl: string | null }>;
  /** Succeeds if the object is absent. */
  remove(key: string): Promise<void>;
};

/** Object store for uploads. With `folder`, the embedded object store stores objects on this host's disk. */
export type ObjectStore = RemoteObjects | { folder: string };

export type ChatUser = { id: string; username: string };

/** A chat platform with OAuth 2 (RFC 6749) and PKCE (RFC 7636, S256). */
export type ChatPlatform = {
  authorizationUrl(ask: { state: string; codeChallenge: string }): string;
  /**
   * Returns the user. Rejects with `bad_request` if the platform rejects the code, and with `upstream_unavailable` if
   * the platform does not respond.
   */
  identify(proof: { code: string; verifier: string }): Promise<ChatUser>;
};

/** Node in the list of the central miner server. */
export type MinerNode = {
  ipAddress: string;
  port: number;
  gpuType: string;
  gpuCount: number;
  /** Null for the default price of the GPU type. */
  usdPerGpuHour: number | null;
};

/** Numbers of nodes that a synchronisation added, updated and removed. */
export type SyncCounts = { added: number; updated: number; removed: number };

/** Server that responds to validators on behalf of providers who opted in. It has a list of each provider's nodes. */
export type CentralMiner = {
  /** Address that providers receive. */
  host: string;
  port: number;
  /** Returns a provider's nodes. Rejects with `upstream_unavailable`. */
  list(hotkey: Hotkey): Promise<MinerNode[]>;
  /** Replaces the list of a provider's nodes. Rejects with `upstream_unavailable`. */
  replace(hotkey: Hotkey, nodes: readonly MinerNode[]): Promise<SyncCounts>;
};

/** Request for a pod's support channel; `name` is the same in every request for the pod. */
export type ChannelRequest = {
  podId: string;
  accountId: string;
  name: string;
  /** The renter's user on the chat platform, whom the service invites to the channel. */
  chatUserId: string;
  topic: string | null;
  message: string | null;
};
export type SupportChannel = {
  id: string;
  name: string;
  /** URL of the channel; null if the channel has none. */
  url: string | null;
  /** True if this call created the channel. */
  created: boolean;
  createdAtMs: number;
};

export type SupportChannels = {
  /** Creates the pod's channel, or returns the existing one unchanged. Concurrent calls create one channel. */
  open(request: ChannelRequest): Promise<SupportChannel>;
};

/**
 * Location and credentials of a restic repository. The password is not included, because the storage does not have it.
 */
export type RepositoryPlace = {
  /** restic's repository location, without credentials. */
  location: string;
  /** Environment variables of restic's back end. */
  environment: Record<string, string>;
};

/** Objects in a bucket that only this marketplace writes. */
export type ObjectBucket = {
  /** Returns the bytes of an object; null if it is absent. */
  size(key: string): Promise<number | null>;
  /** Both ends of the range are included; null reads the whole object. Resolves to null if it is absent. */
  read(key: string, range: { start: number; end: number } | null): Promise<Readable | null>;
  /** Stores a file, or nothing (`content` null), unless the object exists: then resolves to false. */
  create(key: string, content: { file: string; bytes: number } | null): Promise<boolean>;
  /** Succeeds for an absent object. */
  remove(key: string): Promise<void>;
  /** Yields the objects whose keys begin with `prefix`, page by page. */
  list(prefix: string): AsyncIterable<readonly { key: string; bytes: number }[]>;
};

/** Storage of backups that this process serves: a folder on its host's disk, or a bucket. */
export type BackupFolder = {
  /** Folder of the repositories. With a bucket: folder for uploads until they are complete and verified. */
  folder: string;
  /** Bucket of the repositories; absent: they are in the folder. */
  bucket?: ObjectBucket;
  /** Limit for the total size of one account's repositories. */
  bytesPerAccount: number;
  /** Returns the space on the file system of `folder`. Default: the operating system's figures. Set only in tests. */
  spaceOf?: (folder: string) => Promise<{ totalBytes: number; freeBytes: number }>;
};

/** Storage of backup repositories. Each pod or volume has one repository, whose id is that of the pod or volume. */
export type BackupStorage = {
  /**
   * Returns the location of a repository with credentials. With `append` rights, the holder may add and read data, and
   * remove its own locks; with `full` rights, it may also prune.
   */
  place(
    repository: { id: string; accountId: string },
    rights: 'append' | 'full',
  ): Promise<RepositoryPlace>;
  /** Returns the stored bytes; null if unknown. */
  bytesOf(repositoryId: string): Promise<number | null>;
  /** Removes the repository. Succeeds if it is absent. */
  remove(repositoryId: string): Promise<void>;
};

/**
 * Removes every snapshot except `keepSnapshots` from a repository and frees the space. Meanwhile, no other process may
 * use the repository. Returns false if restic is not installed; rejects if restic fails.
 */
export type PruneRepository = (
  access: RepositoryAccess,
  keepSnapshots: readonly string[],
) => Promise<boolean>;

/** Charge of a stored payment method. `key` is the idempotency key. */
export type ChargeOrder = {
  key: string;
  customerId: string | null;
  paymentMethodId: string;
  amountUusd: number;
};
export type ChargeAnswer =
  | { state: 'succeeded' | 'pending'; externalId: string }
  /** `reason` is shown to the payer. */
  | { state: 'declined'; externalId: string | null; reason: string };

/** Change of a charge after the processor's first response. */
export type PaymentEvent = {
  externalId: string;
  /** Idempotency key of the charge; null if the processor does not return it. */
  key: string | null;
  change:
    | { kind: 'succeeded' }
    | { kind: 'declined'; reason: string }
    /** Total amount refunded so far. */
    | { kind: 'refunded'; totalUusd: number }
    | { kind: 'disputed'; amountUusd: number };
};

/** Request of the processor to the callback route, unparsed. */
export type PaymentCallback = { body: Uint8Array; signature: string };

/** Accounts at the payment processor that receive payouts. */
export type Onboarding = {
  /**
   * Creates the owner's payout account unless `payoutAccountId` is set. Returns the URL of a page on which the owner
   * completes the onboarding. Rejects with `upstream_unavailable`.
   */
  begin(owner: {
    accountId: string;
    email: string;
    payoutAccountId: string | null;
    /** Origin of the API. */
    origin: string;
  }): Promise<{ payoutAccountId: string; url: string }>;
  /** Returns true if payouts to the account are possible. Rejects with `upstream_unavailable`. */
  isComplete(payoutAccountId: string): Promise<boolean>;
};

/** Report of the processor that the owner of a payout account has completed the onboarding. */
export type OnboardingEvent = { onboarded: string };

export type Payments = {
  /** Name of the processor, stored with each charge. */
  name: string;
  /** Absent if the processor cannot pay to accounts. */
  onboarding?: Onboarding;
  /**
   * Stores a payment method that can be charged without its owner's participation, and returns the owner's customer id.
   * Rejects with `bad_request` if the method cannot be stored.
   */
  attach(method: {
    accountId: string;
    customerId: string | null;
    paymentMethodId: string;
  }): Promise<{ customerId: string | null }>;
  /**
   * Charges the method. Rejects if the processor does not respond. A repeated request with the same key does not charge
   * again.
   */
  charge(order: ChargeOrder): Promise<ChargeAnswer>;
  /** Returns the present state of a charge. */
  findCharge(externalId: string): Promise<ChargeAnswer>;
  /**
   * Parses a callback. Returns null if the callback concerns neither a charge nor a payout account. Rejects with
   * `unauthorized` unless the processor has signed the callback. Absent if the processor sends no callbacks.
   */
  parseCallback?(callback: PaymentCallback): Promise<PaymentEvent | OnboardingEvent | null>;
  /** Passes events that arrive without a callback to `apply`. Passes an event again if `apply` rejects. */
  poll?(apply: (event: PaymentEvent) => Promise<void>): Promise<void>;
};

/** Payout. `key` is the idempotency key; it does not expire. */
export type PayoutOrder = {
  key: string;
  amountUusd: number;
  method: PayoutMethod;
  address: string;
  /** Null if the payout method has no network. */
  network: string | null;
};
export type PayoutAnswer =
  | { state: 'paid' | 'pending'; externalId: string }
  | { state: 'declined'; externalId: string | null; reason: string };

export type PayoutProcessor = {
  /** Name of the processor, stored with each payout. */
  name: string;
  /**
   * Pays, or returns the state of the payout with this key. Rejects if the processor does not respond; then the caller
   * retries.
   */
  send(order: PayoutOrder): Promise<PayoutAnswer>;
};

/** Source of deposits. */
export type CollateralFeed = {
  /**
   * Returns the ids of nodes with a deposit and the hotkeys of providers with a deposit, sorted. Rejects if the source
   * fails.
   */
  subjects(): Promise<string[]>;
};

/** Place of an address according to a table. */
export type AddressPlace = {
  /** ISO 3166-1 alpha-2. */
  countryCode: string;
  lat: number | null;
  lon: number | null;
  /** Radius around the coordinates; null if the table does not contain it. */
  accuracyKm: number | null;
};

export type AddressTable = {
  /** Returns the place of an address; null if the table does not contain the address. Reads from memory. */
  find(ip: string): AddressPlace | null;
};

/** Result of an audit of the whole ledger. */
export type LedgerAudit = {
  transfers: number;
  accounts: number;
  openHolds: number;
  /** SHA-256 of the balances recomputed from the journal; see `balanceHash` in money/ledger/audit.ts. */
  hash: string;
  /** Violated invariants: the id of the rule, the place, and a description of the violation. */
  findings: { rule: string; where: string; what: string }[];
  /** Number of findings beyond the limit. */
  more: number;
};

export type AlphaRates = {
  /** Returns the subnets, one of which is the default. Rejects with 503 `upstream_unavailable`. */
  subnets(): Promise<AlphaSubnet[]>;
};
