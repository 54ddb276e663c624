/** When pods will be ready: from launches and pulls seen before, and then from what their agents say. */
import { MAX_WAIT_MS } from '#shared/api/agent/bounds.ts';
import type { PodSpecInput, PodView } from '#shared/api/agent/pod.ts';
import type { Db, Pod, Template } from '../../platform/database/tables.ts';
import {
  ASSUMED_START_MS,
  type EtaBasis,
  imageKey,
  isBuiltin,
  type LaunchKnowledge,
  launchEstimate,
} from '../executors/launch-estimate.ts';
import { pullFigures } from '../executors/pull-measures.ts';
import { CREATION_STATES } from './pod.state.ts';
import { listLaunches } from './pod.store.ts';
import { templateImage } from './pod-spec.ts';

/** The latest of a node that are looked at. */
const LAUNCHES_LOOKED_AT = 20;
const MS_PER_SECOND = 1_000;
/** News of less than this is none. */
const RESOLUTION_MS = 2_000;

export type Expectation = Pick<Pod, 'ready_expected_at' | 'eta_basis'>;

/** Of a node and an image, by its key; `templateBytes` counts while nobody has seen the image. */
async function launchKnowledge(
  db: Db,
  executorId: string,
  { key, templateBytes }: { key: string; templateBytes: number | null },
): Promise<LaunchKnowledge> {
  const figures = await pullFigures(db, executorId, key);
  const launches = await listLaunches(db, executorId, LAUNCHES_LOOKED_AT);
  return {
    sameImageMs: launches.filter(({ image }) => image === key).map(({ tookMs }) => tookMs),
    anyImageMs: launches.map(({ tookMs }) => tookMs),
    isBuiltin: isBuiltin(key),
    imageBytes: figures.imageBytes ?? templateBytes,
    bytesPerSecond: figures.bytesPerSecond,
  };
}

/** What is known before anybody rents `template` on the node. */
export function templateKnowledge(
  db: Db,
  executorId: string,
  template: Template,
): Promise<LaunchKnowledge> {
  const key = imageKey(templateImage(template));
  return launchKnowledge(db, executorId, { key, templateBytes: template.docker_image_size });
}

/** Of a pod that is rented now. Nobody can tell how long a build takes. */
export async function expectationAtRent(
  db: Db,
  executorId: string,
  rent: { image: PodSpecInput['image']; template: Template; nowMs: number },
): Promise<Expectation> {
  if (!('reference' in rent.image)) return { ready_expected_at: null, eta_basis: null };
  const { ms, basis } = launchEstimate(await templateKnowledge(db, executorId, rent.template));
  return { ready_expected_at: Math.round(rent.nowMs + ms), eta_basis: basis };
}

/** What a look at the pod changes of it; null for nothing worth writing. Pure. */
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
  // The image is there.
  const at = nowMs + ASSUMED_START_MS;
  if (before !== null && before <= at) return null;
  return { ready_expected_at: at, eta_basis: 'assumed' satisfies EtaBasis };
}
