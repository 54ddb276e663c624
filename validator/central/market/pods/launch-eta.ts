/** Estimates when a pod is ready: from past launches and pulls at first, then from the agent's reports. */
import { MAX_WAIT_MS } from '#shared/api/agent/bounds.ts';
import type { PodSpecInput, PodView } from '#shared/api/agent/pod.ts';
import type { Db, Pod, Template } from '../../platform/database/tables.ts';
import {
  ASSUMED_START_MS,
  type EtaBasis,
  imageKey,
  isBuiltin,
  type LaunchHistory,
  launchEstimate,
} from '../executors/launch-estimate.ts';
import { pullFigures } from '../executors/pull-speed.ts';
import { CREATION_STATES } from './pod.state.ts';
import { listLaunches } from './pod.store.ts';
import { templateImage } from './pod-spec.ts';

/** Number of latest launches of a node that are considered. */
const LAUNCH_LIMIT = 20;
const MS_PER_SECOND = 1_000;
/** Smallest change of the estimate that is stored. */
const RESOLUTION_MS = 2_000;

export type Expectation = Pick<Pod, 'ready_expected_at' | 'eta_basis'>;

/**
 * Reads past launches and pulls. `templateBytes` is the image's size according to the template, for an image that was
 * never pulled.
 */
async function launchHistory(
  db: Db,
  executorId: string,
  { key, templateBytes }: { key: string; templateBytes: number | null },
): Promise<LaunchHistory> {
  const figures = await pullFigures(db, executorId, key);
  const launches = await listLaunches(db, executorId, LAUNCH_LIMIT);
  return {
    sameImageMs: launches.filter(({ image }) => image === key).map(({ tookMs }) => tookMs),
    anyImageMs: launches.map(({ tookMs }) => tookMs),
    isBuiltin: isBuiltin(key),
    imageBytes: figures.imageBytes ?? templateBytes,
    bytesPerSecond: figures.bytesPerSecond,
  };
}

/** Past launches and pulls of the template's image on the node. */
export function launchHistoryFor(
  db: Db,
  executorId: string,
  template: Template,
): Promise<LaunchHistory> {
  const key = imageKey(templateImage(template));
  return launchHistory(db, executorId, { key, templateBytes: template.docker_image_size });
}

/** Returns the estimate at the time of the rental. Its members are null for a pod that is built from a Dockerfile. */
export async function expectationAtRent(
  db: Db,
  executorId: string,
  rent: { image: PodSpecInput['image']; template: Template; nowMs: number },
): Promise<Expectation> {
  if (!('reference' in rent.image)) return { ready_expected_at: null, eta_basis: null };
  const { ms, basis } = launchEstimate(await launchHistoryFor(db, executorId, rent.template));
  return { ready_expected_at: Math.round(rent.nowMs + ms), eta_basis: basis };
}

/** Returns the estimate if a report of the agent changed it; null if the change is too small to store. Pure. */
export function expectationAfter(pod: Pod, view: PodView, nowMs: number): Expectation | null {
  if (!CREATION_STATES.some((state) => state === pod.state)) return null;
  const before = pod.ready_expected_at;
  if (view.phase === 'pulling') {
    const seconds = view.pull?.eta_seconds ?? null;
    if (seconds === null) return null;
    const waitMs = Math.min(MAX_WAIT_MS, seconds * MS_PER_SECOND + ASSUMED_START_MS);
    const at = nowMs + waitMs;
    const isSame = pod.eta_basis === 'progress' && Math.abs(at - (before ?? 0)) < RESOLUTION_MS;
    return isSame ? null : { ready_expected_at: at, eta_basis: 'progress' satisfies EtaBasis };
  }
  if (!['creating', 'starting', 'running'].includes(view.phase)) return null;
  // The pull has ended, so only the start-up remains.
  const at = nowMs + ASSUMED_START_MS;
  if (before !== null && before <= at) return null;
  return { ready_expected_at: at, eta_basis: 'assumed' satisfies EtaBasis };
}
