/** Ports of the central API to external services. Adapters are in adapters/. */
import type { WebSocket } from 'ws';
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

/** `requestId` identifies the terminal in the logs of every process it passes. */
export type TerminalOptions = { query: TerminalQuery; requestId: string; signal: AbortSignal };

/** Agents, reached through the gateway of a validator. */
export type Agents = {
  /** Hotkey that signs commands. Gateways accept no other. */
  hotkey: Hotkey;
  /** Calls reject with `upstream_unavailable` if the gateway or the agent does not answer. */
  clientOf(executorId: string): AgentClient;
  /** Opens a pod's terminal, paused. Rejects with the node's error or `upstream_unavailable`. */
  terminalOf(executorId: string, podId: string, options: TerminalOptions): Promise<WebSocket>;
  /** Makes the validator check the executor now. Rejects with `upstream_unavailable`. */
  checkNow(executorId: string, wish: CheckRequest): Promise<HealthReport>;
  /** Digest of the agent release, signed by the validator. Rejects with `upstream_unavailable`. */
  signedDigest(): Promise<SignedDigest>;
  /** Estimated share of rewards for a node of this kind. Rejects with `upstream_unavailable`. */
  rewardShares(question: RewardQuery): Promise<RewardShares>;
};

/** A mail to one address. `id` is the same for all attempts. */
export type OutgoingMail = { id: string; to: string; subject: string; text: string; html: string };

export type Mailer = {
  /** Rejects with MailRefused if a retry cannot succeed, and with another error if it can. */
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
 * Sends it once, to an allowed address, following no redirect. Whatever comes of it is an answer; rejects only when
 * `signal` aborts.
 */
export type PostWebhook = (request: WebhookRequest, signal: AbortSignal) => Promise<Attempt>;

/** One upload of exactly this size and type. */
export type RemoteUpload = {
  key: string;
  contentType: string;
  sizeBytes: number;
  lifetimeS: number;
};

/** An external object store. */
export type RemoteObjects = {
  /** Returns a URL that accepts the object by PUT with these headers; `publicUrl` is its public URL. */
  sign(
    upload: RemoteUpload,
  ): Promise<{ url: string; headers: Record<string, string>; publicUrl: string | null }>;
  /** Succeeds if the object is absent. */
  remove(key: string): Promise<void>;
};

/** `folder`: the embedded object store on this host's disk. */
export type ObjectStore = RemoteObjects | { folder: string };

/** A user of the chat platform. */
export type ChatUser = { id: string; username: string };

/** A chat platform with OAuth 2 (RFC 6749) and PKCE (RFC 7636, S256). */
export type ChatPlatform = {
  authorizationUrl(ask: { state: string; codeChallenge: string }): string;
  /** Rejects with `bad_request` if the platform rejects the code, and with `upstream_unavailable`. */
  identify(proof: { code: string; verifier: string }): Promise<ChatUser>;
};

/** A node in the central miner server's list. */
export type MinerNode = {
  ipAddress: string;
  port: number;
  gpuType: string;
  gpuCount: number;
  /** Null for the default price of the type. */
  usdPerGpuHour: number | null;
};

/** Result of a synchronisation. */
export type SyncCounts = { added: number; updated: number; removed: number };

/** The server that answers validators on behalf of providers who opted in, with a list of each provider's nodes. */
export type CentralMiner = {
  /** Address shown to providers. */
  host: string;
  port: number;
  /** Lists a provider's nodes. Rejects with `upstream_unavailable`. */
  list(hotkey: Hotkey): Promise<MinerNode[]>;
  /** Replaces a provider's list. Rejects with `upstream_unavailable`. */
  replace(hotkey: Hotkey, nodes: readonly MinerNode[]): Promise<SyncCounts>;
};

/** A pod's support channel; `name` is the same for every request. */
export type ChannelRequest = {
  podId: string;
  accountId: string;
  name: string;
  /** The renter on the chat platform, who is invited. */
  chatUserId: string;
  topic: string | null;
  message: string | null;
};
export type SupportChannel = {
  id: string;
  name: string;
  /** URL of the channel; null if it has none. */
  url: string | null;
  /** True if this call created it. */
  created: boolean;
  createdAtMs: number;
};

export type SupportChannels = {
  /** Creates the pod's channel, or returns the existing one unchanged. Concurrent calls create one channel. */
  open(request: ChannelRequest): Promise<SupportChannel>;
};

/** Location and credentials of a restic repository, except its password, which the storage does not have. */
export type RepositoryPlace = {
  /** restic's repository location, without credentials. */
  location: string;
  /** Environment variables of restic's back end. */
  environment: Record<string, string>;
};

/** Storage of backups on this host's disk. */
export type BackupFolder = {
  folder: string;
  /** Limit of one account's repositories together. */
  bytesPerAccount: number;
  /** Reads the size of the file system; default: the operating system. For tests. */
  spaceOf?: (folder: string) => Promise<{ totalBytes: number; freeBytes: number }>;
};

/** Storage of backup repositories: one per pod or volume, by its id. */
export type BackupStorage = {
  /** `append` may add, read, and remove its own locks; `full` may also prune. */
  place(
    repository: { id: string; accountId: string },
    rights: 'append' | 'full',
  ): Promise<RepositoryPlace>;
  /** Stored bytes; null if unknown. */
  bytesOf(repositoryId: string): Promise<number | null>;
  /** Removes the repository. Succeeds if it is absent. */
  remove(repositoryId: string): Promise<void>;
};

/**
 * Removes every snapshot except `keepSnapshots` from a repository and frees their space. No other process may use the
 * repository meanwhile. Returns false if restic is not installed; rejects if it fails.
 */
export type PruneRepository = (
  access: RepositoryAccess,
  keepSnapshots: readonly string[],
) => Promise<boolean>;

/** One charge of a stored payment method. `key` is the idempotency key. */
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

/** Outcome of a charge after its first answer. */
export type PaymentEvent = {
  externalId: string;
  /** Key of the charge, if the processor repeats it. */
  key: string | null;
  change:
    | { kind: 'succeeded' }
    | { kind: 'declined'; reason: string }
    /** Total refunded so far. */
    | { kind: 'refunded'; totalUusd: number }
    | { kind: 'disputed'; amountUusd: number };
};

/** A callback request of the processor, unparsed. */
export type PaymentCallback = { body: Uint8Array; signature: string };

export type Payments = {
  /** Stored with each charge. */
  name: string;
  /**
   * Attaches a payment method for charges without its owner and returns the owner's customer id. Rejects with
   * `bad_request` for a method that cannot be attached.
   */
  attach(method: {
    accountId: string;
    customerId: string | null;
    paymentMethodId: string;
  }): Promise<{ customerId: string | null }>;
  /** Rejects without an answer. Repeating the request with the same key does not charge again. */
  charge(order: ChargeOrder): Promise<ChargeAnswer>;
  /** Returns the present state of a charge. */
  findCharge(externalId: string): Promise<ChargeAnswer>;
  /**
   * Parses a callback; null if it does not concern a charge. Rejects with `unauthorized` without the processor's
   * signature. Absent: the processor sends no callbacks.
   */
  parseCallback?(callback: PaymentCallback): Promise<PaymentEvent | null>;
  /** Passes events that come without a callback to `apply`, again if it rejects. */
  poll?(apply: (event: PaymentEvent) => Promise<void>): Promise<void>;
};

/** A payout. `key` is the idempotency key, without expiry. */
export type PayoutOrder = {
  key: string;
  amountUusd: number;
  method: PayoutMethod;
  address: string;
  /** Null if the method has none. */
  network: string | null;
};
export type PayoutAnswer =
  | { state: 'paid' | 'pending'; externalId: string }
  | { state: 'declined'; externalId: string | null; reason: string };

export type PayoutProcessor = {
  /** Stored with each payout. */
  name: string;
  /** Pays, or returns the state of the payout with this key. Rejects without an answer; the caller retries. */
  send(order: PayoutOrder): Promise<PayoutAnswer>;
};

/** Rates of alpha tokens. */
export type AlphaRates = {
  /** One of the subnets is the default. Rejects with 503 `upstream_unavailable`. */
  subnets(): Promise<AlphaSubnet[]>;
};
