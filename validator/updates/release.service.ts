/**
 * Signs the manifest of the agent version that should run. The digest is read from the registry; the other fields are
 * stored.
 */
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
import { publishedChain } from './key-set.store.ts';
import { releaseOf, targetOf } from './release.state.ts';
import { addRelease, newestRelease, wasReleased } from './release.store.ts';

/** Image to sign, and the settings of its manifests. */
export type ReleaseSource = {
  image: string;
  tag: string;
  /** Id of our key in key sets, or its ss58. */
  keyId: string;
  /** Rollout of a new digest until the operator changes it. */
  firstPermille: number;
  /** Validity of an answer, milliseconds. */
  expiryMs: number;
  /** Reads the login of a private registry; throws what is wrong with it. Absent or null: the image is public. */
  readLogin?(): RegistryAuth | null;
};

export type ReleaseServiceOptions = {
  store: EvidenceStore;
  clock: Clock;
  log: Log;
  signer: Signer;
  readTag: ReadTag;
  /** Null if no image is signed. */
  source: ReleaseSource | null;
  /** Time that agents have for a new release before checks fail, milliseconds. */
  graceMs: number;
};

export type Releases = ReturnType<typeof createReleases>;

/** Time for which an answer or a failure is cached. */
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
    const release = await releaseFor(found, from);
    const signed = await signUpdate(manifestOf(release, from, clock.now()), signer, from.keyId);
    const keySets = await publishedChain(store);
    return keySets.length === 0 ? signed : { ...signed, keySets };
  }

  /** Stores a new sequence before it is published. */
  async function releaseFor(found: TagContent, from: ReleaseSource): Promise<AgentReleaseRow> {
    return store.transaction().execute(async (tx) => {
      const newest = await newestRelease(tx);
      const next = releaseOf(found, newest, {
        version: from.tag,
        permille: from.firstPermille,
        nowMs: clock.now(),
      });
      if (next === newest) return next;
      await addRelease(tx, next);
      log.info({ sequence: next.sequence, digest: next.digest }, 'new release of the agent');
      // Another process may have stored the same digest first.
      return (await newestRelease(tx)) ?? next;
    });
  }

  return {
    /** Rejects with `upstream_unavailable` if the registry cannot be read or no image is configured. */
    current(): Promise<SignedDigest> {
      if (source === null) {
        throw new ApiError('upstream_unavailable', 'This validator publishes no agent releases', {
          hint: 'Set VALIDATOR_AGENT_IMAGE of the validator.',
        });
      }
      const nowMs = clock.monotonicMs();
      if (cached !== null && nowMs - cached.atMs < CACHE_MS) return cached.answer;
      const pending = answer(source);
      cached = { atMs: nowMs, answer: pending };
      pending.catch((error: unknown) =>
        log.warn({ detail: messageOf(error) }, 'signing of the agent digest failed'),
      );
      return pending;
    },

    /** Facts for the check of an agent's digest; null before the first release. */
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

/** Returns null if the image is public or none is configured. Throws ConfigError for an invalid file. */
export function releaseLoginOf(config: ValidatorConfig): RegistryAuth | null {
  const { VALIDATOR_AGENT_IMAGE: image, VALIDATOR_AGENT_LOGIN_FILE: file } = config;
  if (image === undefined || file === undefined) return null;
  return readRegistryLogin(file, image, 'VALIDATOR_AGENT_LOGIN_FILE');
}
