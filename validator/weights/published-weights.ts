/**
 * Compares the stored history with the weights that the central API has acknowledged and publishes. A change of
 * the evidence store does not change them, so a store that lost its newest epochs is detected.
 */
import {
  type LatestSetWeights,
  LatestSetWeightsResponse,
} from '#shared/api/central/set-weights.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { findPosted, lastEpoch } from './epoch.store.ts';
import { readPayload } from './epoch-record.ts';

/** Returns the newest weights that were acknowledged for a validator; null for none. */
export type PublishedWeights = (validator: Hotkey) => Promise<LatestSetWeights | null>;

const TIMEOUT_MS = 10_000;
const NOT_FOUND = 404;

/** Reads the weights from the public route of a central API, whose `baseUrl` includes `/api`. */
export function createPublishedWeights(
  baseUrl: string,
  clock: Pick<Clock, 'deadline'>,
): PublishedWeights {
  return async (validator) => {
    const url = `${baseUrl.replace(/\/+$/, '')}/validator/${validator}/latest-set-weights`;
    const response = await fetch(url, { signal: clock.deadline(TIMEOUT_MS) });
    if (response.status === NOT_FOUND) return null;
    if (!response.ok) throw new Error(`${url} answered with status ${response.status}`);
    const { validator_key: _, ...payload } = LatestSetWeightsResponse.parse(await response.json());
    return payload;
  };
}

/** Lists acknowledged weights that no stored epoch has, because the newest epochs are missing or were replaced. */
export async function truncationProblems(
  store: EvidenceStore,
  keys: readonly TrustedHotkey[],
  published: PublishedWeights,
): Promise<string[]> {
  const problems: string[] = [];
  for (const hotkey of new Set(keys.map((key) => key.hotkey))) {
    try {
      const weights = await published(hotkey);
      const problem = weights === null ? null : await missingEpoch(store, weights);
      if (problem !== null) problems.push(problem);
    } catch (error) {
      problems.push(`${UNKNOWN} (${messageOf(error)})`);
    }
  }
  return problems;
}

const UNKNOWN =
  'the central API does not report which weights it acknowledged, so the newest epochs may be missing';

/**
 * Returns the problem of acknowledged weights that no stored epoch has. Null also for weights that are older than the
 * newest epoch: their epoch may have been pruned, and the check of the chain finds missing epochs.
 */
async function missingEpoch(
  store: EvidenceStore,
  weights: LatestSetWeights,
): Promise<string | null> {
  if ((await findPosted(store, canonicalJson(weights))) !== undefined) return null;
  const { updated_at: at } = weights;
  const newest = await lastEpoch(store);
  const last = newest === undefined ? '' : readPayload(newest).updated_at;
  if (last === at)
    return `the weights of ${at} were acknowledged with other values than epoch ${newest?.number} has`;
  if (last > at) return null;
  return `weights of ${at} were posted and acknowledged, but no stored epoch is so new: the newest epochs are missing`;
}
