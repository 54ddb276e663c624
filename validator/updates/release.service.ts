/** The signed answer to what agents are to run: the registry is asked now and then, the rest is on record (validator reference 4.1). */
import type { RegistryAuth } from '#shared/api/agent/images.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import { readRegistryLogin } from '#shared/updates/registry-login.ts';
import {
  type SignedDigest,
  signUpdate,
  type UpdateManifest,
} from '#shared/updates/update-manifest.ts';
import type { Measured } from '../checks/measured.ts';
import type { ValidatorConfig } from '../config.ts';
import type { AgentReleaseRow, EvidenceStore } from '../store/tables.ts';
import type { ReadTag, TagContent } from './image-registry.ts';
import { releaseOf, targetOf } from './release.state.ts';
import { addRelease, newestRelease, wasReleased } from './release.store.ts';

/** Which image is signed for, and how. */
export type ReleaseSource = {
  image: string;
  tag: string;
  /** What key sets call our key; its ss58 serves too. */
  keyId: string;
  /** How many of a thousand agents get a new digest before anybody says more. */
  firstPermille: number;
  /** How long an answer counts. */
  expiryMs: number;
  /** The login for a registry that wants one, read anew each time; throws what is wrong with it. Absent or null: the image is public. */
  readLogin?(): RegistryAuth | null;
};

export type ReleaseServiceOptions = {
  store: EvidenceStore;
  clock: Clock;
  log: Log;
  signer: Signer;
  readTag: ReadTag;
  /** Null: no image is signed for. */
  source: ReleaseSource | null;
  /** How long checks bear with whoever has not followed a new release yet. */
  graceMs: number;
};

export type Releases = ReturnType<typeof createReleases>;

/** Of answers and of failures. */
const CACHE_MS = 300_000;
const CHANNEL = 'stable';

export function createReleases(options: ReleaseServiceOptions) {
  const { store, clock, log, signer, source } = options;
  let cached: { atMs: number; answer: Promise<SignedDigest> } | null = null;

  const contentOf = async (from: ReleaseSource): Promise<TagContent> =>
    options.readTag(from.image, from.tag, from.readLogin?.() ?? null);

  async function answer(from: ReleaseSource): Promise<SignedDigest> {
    const found = await contentOf(from).catch((cause: unknown) => {
      const message = `The registry could not be read (${messageOf(cause)})`;
      throw new ApiError('upstream_unavailable', message, { cause });
    });
    const release = await settle(found, from);
    return signUpdate(manifestOf(release, from, clock.now()), signer, from.keyId);
  }

  /** Its sequence is on disk before anybody hears of it. */
  async function settle(found: TagContent, from: ReleaseSource): Promise<AgentReleaseRow> {
    return store.transaction().execute(async (tx) => {
      const newest = await newestRelease(tx);
      const next = releaseOf(found, newest, {
        ...{ version: from.tag, permille: from.firstPermille, nowMs: clock.now() },
      });
      if (next === newest) return next;
      await addRelease(tx, next);
      log.info({ sequence: next.sequence, digest: next.digest }, 'new release of the agent');
      // Of two processes that saw the new digest at once one was first.
      return (await newestRelease(tx)) ?? next;
    });
  }

  return {
    /** Rejects with `upstream_unavailable` when the registry cannot be read, or no image is named. */
    current(): Promise<SignedDigest> {
      if (source === null) {
        throw new ApiError('upstream_unavailable', 'No image of the agent is named here');
      }
      const nowMs = clock.monotonicMs();
      if (cached !== null && nowMs - cached.atMs < CACHE_MS) return cached.answer;
      const asked = answer(source);
      cached = { atMs: nowMs, answer: asked };
      asked.catch((error: unknown) => log.warn({ detail: messageOf(error) }, 'no signed digest'));
      return asked;
    },

    /** What checks compare the digest of an agent with; null where nothing was ever released. */
    async expected(running: string | null): Promise<Measured['releases']> {
      const newest = source === null ? undefined : await newestRelease(store);
      if (newest === undefined) return null;
      return {
        target: targetOf(newest),
        sequence: newest.sequence,
        is_known: running !== null && (await wasReleased(store, running)),
        rollout_permille: newest.rollout_permille,
        grace_until_ms: newest.since_ms + options.graceMs,
      };
    },
  };
}

function manifestOf(row: AgentReleaseRow, from: ReleaseSource, nowMs: number): UpdateManifest {
  return {
    v: 1,
    kind: 'image-digest',
    image: from.image,
    tag: from.tag,
    digest: row.digest,
    platforms: JSON.parse(row.platforms_json) as Record<string, string>,
    version: row.version,
    sequence: row.sequence,
    minSequence: row.min_sequence,
    channel: CHANNEL,
    rolloutPermille: row.rollout_permille,
    issuedAt: nowMs,
    expiresAt: nowMs + from.expiryMs,
    minAgent: row.min_agent,
    previousDigest: row.previous_digest,
    ...(row.rollback_digest === null
      ? {}
      : { rollbackTo: { digest: row.rollback_digest, reason: row.rollback_reason } }),
    notes: row.notes,
  };
}

// MERGED validator/updates/release.service.ts: The login for the registry of the agent's image.
/** Null: the image is public, or none is named. Throws ConfigError that says what is wrong with the file. */
export function releaseLoginOf(config: ValidatorConfig): RegistryAuth | null {
  const { VALIDATOR_AGENT_IMAGE: image, VALIDATOR_AGENT_LOGIN_FILE: file } = config;
  if (image === undefined || file === undefined) return null;
  return readRegistryLogin(file, image, 'VALIDATOR_AGENT_LOGIN_FILE');
}
