/** The ways out of the central API: what it needs of the world, each behind a port. Adapters are in adapters/. */
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

/** What a terminal is asked for with; `requestId` names it in the records of every hop. */
export type TerminalWish = { query: TerminalQuery; requestId: string; signal: AbortSignal };

/** The way to agents: through the gateway of a validator. */
export type Agents = {
  /** The key that commands are signed with: whom gateways are to obey. */
  hotkey: Hotkey;
  /** Calls answer `upstream_unavailable` when the gateway or the agent does not. */
  clientOf(executorId: string): AgentClient;
  /** A pod's terminal, paused. Rejects with the node's refusal or `upstream_unavailable`. */
  terminalOf(executorId: string, podId: string, wish: TerminalWish): Promise<WebSocket>;
  /** Has the validator check the executor now; rejects with `upstream_unavailable`. */
  checkNow(executorId: string, wish: CheckRequest): Promise<HealthReport>;
  /** What agents are to run, as the validator signs it; rejects with `upstream_unavailable`. */
  signedDigest(): Promise<SignedDigest>;
  /** What the validator's weights would give a node of this kind; rejects with `upstream_unavailable`. */
  rewardShares(question: RewardQuery): Promise<RewardShares>;
};

/** A mail to one address; `id` stays the same over attempts. */
export type OutgoingMail = { id: string; to: string; subject: string; text: string; html: string };

/** The way to people. */
export type Mailer = {
  /** Rejects with MailRefused when trying again is of no use, with anything else when it may be. */
  send(mail: OutgoingMail): Promise<void>;
  close(): Promise<void>;
};

/** The mail server will never take this mail. */
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

/** What may be uploaded once: exactly this many bytes of this type. */
export type UploadWish = { key: string; contentType: string; sizeBytes: number; lifetimeS: number };

/** An object store elsewhere. */
export type RemoteObjects = {
  /** An address that takes the object by PUT with these headers; `publicUrl` is where everybody can read it. */
  sign(
    wish: UploadWish,
  ): Promise<{ url: string; headers: Record<string, string>; publicUrl: string | null }>;
  /** Absent objects count as removed. */
  remove(key: string): Promise<void>;
};

/** `folder`: our own object store on this machine's disk. */
export type ObjectStore = RemoteObjects | { folder: string };

/** Who somebody is on the chat platform. */
export type ChatUser = { id: string; username: string };

/** A chat platform that people log in to by OAuth 2 (RFC 6749) with PKCE (RFC 7636, S256). */
export type ChatPlatform = {
  authorizationUrl(ask: { state: string; codeChallenge: string }): string;
  /** Rejects with `bad_request` for a code that the platform refuses, `upstream_unavailable` when it does not answer. */
  identify(proof: { code: string; verifier: string }): Promise<ChatUser>;
};

/** A node as the central miner server has it. */
export type MinerNode = {
  ipAddress: string;
  port: number;
  gpuType: string;
  gpuCount: number;
  /** Null: what the type costs by itself. */
  usdPerGpuHour: number | null;
};

/** What a synchronisation came to. */
export type SyncCounts = { added: number; updated: number; removed: number };

/** The server that answers validators on behalf of providers who opted in, and keeps a list of each one's nodes. */
export type CentralMiner = {
  /** Where it is, as providers are told. */
  host: string;
  port: number;
  /** A provider's nodes there. Rejects with `upstream_unavailable`. */
  list(hotkey: Hotkey): Promise<MinerNode[]>;
  /** Makes these a provider's nodes there, in place of those before. Rejects with `upstream_unavailable`. */
  replace(hotkey: Hotkey, nodes: readonly MinerNode[]): Promise<SyncCounts>;
};

/** A pod's support channel; `name` is the same whenever it is asked for. */
export type ChannelWish = {
  podId: string;
  accountId: string;
  name: string;
  /** The renter on the chat platform, who is to be let in. */
  chatUserId: string;
  topic: string | null;
  message: string | null;
};
export type SupportChannel = {
  id: string;
  name: string;
  /** Where people open it; null where nothing shows it. */
  url: string | null;
  /** It was not there before. */
  created: boolean;
  createdAtMs: number;
};

/** Where renters talk with support. */
export type SupportChannels = {
  /** Opens the pod's channel, or returns the one that is there, as it was opened; also when asked twice at once. */
  open(wish: ChannelWish): Promise<SupportChannel>;
};

/** What opens a restic repository; beside its own password, which the storage never knows. */
export type RepositoryPlace = {
  /** As restic takes it, without credentials. */
  location: string;
  /** Variables of restic's back end. */
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

/** Where repositories of backups lie: one for each pod or volume, by an id of ours. */
export type BackupStorage = {
  /** `append`: may add and read and remove its own locks, nothing else; `full`: may prune too. */
  place(
    repository: { id: string; accountId: string },
    rights: 'append' | 'full',
  ): Promise<RepositoryPlace>;
  /** Bytes at rest; null when nobody can tell. */
  bytesOf(repositoryId: string): Promise<number | null>;
  /** Removes it with everything in it; an absent one counts as removed. */
  remove(repositoryId: string): Promise<void>;
};

/**
 * Takes every snapshot but those out of a repository, which nobody else uses meanwhile, and frees their space. False
 * where there is no program to do it with; rejects when it fails.
 */
export type PruneRepository = (
  access: RepositoryAccess,
  keepSnapshots: readonly string[],
) => Promise<boolean>;

/** One charge of a payment method that was kept; `key` makes a repeat of it the same charge. */
export type ChargeOrder = {
  key: string;
  customerId: string | null;
  paymentMethodId: string;
  amountUusd: number;
};
export type ChargeAnswer =
  | { state: 'succeeded' | 'pending'; externalId: string }
  /** `reason`: a few words for the payer. */
  | { state: 'declined'; externalId: string | null; reason: string };

/** What became of a charge after its answer. */
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

/** A request of the processor's, as it came. */
export type PaymentCallback = { body: Uint8Array; signature: string };

/** The way to payers' money. */
export type Payments = {
  /** Stored beside each charge. */
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

/** A payout; `key` makes a repeat of it the same payout, however late it comes. */
export type PayoutOrder = {
  key: string;
  amountUusd: number;
  method: PayoutMethod;
  address: string;
  /** Null where the method has none. */
  network: string | null;
};
export type PayoutAnswer =
  | { state: 'paid' | 'pending'; externalId: string }
  | { state: 'declined'; externalId: string | null; reason: string };

/** The way of money to those who earned it. */
export type PayoutProcessor = {
  /** Stored beside each payout. */
  name: string;
  /** Pays, or tells how the payout of that key stands. Rejects when there is no answer: it is asked again. */
  send(order: PayoutOrder): Promise<PayoutAnswer>;
};

/** What alpha tokens are worth. */
export type AlphaRates = {
  /** One of them is the default. Rejects with 503 `upstream_unavailable`. */
  subnets(): Promise<AlphaSubnet[]>;
};
