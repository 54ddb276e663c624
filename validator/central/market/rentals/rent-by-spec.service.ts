/** Rents the best node that meets a specification, in one transaction. */

import { microToUsd } from '#shared/api/money.ts';
import { ApiError, type ErrorCode } from '#shared/runtime/errors.ts';
import type { Db } from '../../platform/database/tables.ts';
import { inSavepoint, lockRow, rehearse } from '../../platform/database/transactions.ts';
import { findOnMarket, type MarketNode, requireExecutor } from '../executors/executor.service.ts';
import {
  executorResponse,
  gpuTotalOf,
  locationOf,
  machineNameOf,
} from '../executors/executor-response.ts';
import { type AnnotationsOf, personalFields } from '../executors/node-annotations.ts';
import { assertPlace } from '../executors/place-constraints.ts';
import type {
  NodeSpec,
  RentBySpecRequest,
  RentBySpecResponse,
  SpecAlternative,
} from './rent-by-spec.schemas.ts';
import type { RentExecutorResponse } from './rental.schemas.ts';
import { type RentDeps, type RentRequest, rentIn } from './rental.service.ts';
import { requireVerified } from './rental-checks.ts';
import { refuseUnavailable, requireOneImage, restoreRequestOf } from './rental-request.ts';
import { type Candidate, constraintsOf, gpusFor } from './spec-constraints.ts';
import type { NoMatch, SpecMatch } from './spec-match.ts';

const MAX_ALTERNATIVES = 5;

/** Errors of a node that has changed after it was chosen. */
const LOST_RACE: ReadonlySet<ErrorCode> = new Set([
  'node_not_found',
  'node_not_verified',
  'node_paused_by_provider',
  'node_rent_in_progress',
  'node_unavailable',
  'provider_banned',
  'gpu_count_invalid',
  'gpu_split_not_allowed',
]);

export type RentBySpec = Omit<RentRequest, 'executorId' | 'body'> & {
  body: RentBySpecRequest;
  /** True if the answer contains the funnel. */
  isExplained: boolean;
};

export type RentBySpecDeps = RentDeps & { annotationsOf: AnnotationsOf };

/**
 * Rents the first node of `match` that is still free. A dry run does the same and rolls back, so that its
 * success means that the rental would succeed. Throws 409 `no_executor_matches_spec`.
 */
export async function rentBySpecIn(
  tx: Db,
  deps: RentBySpecDeps,
  request: RentBySpec,
  match: SpecMatch | NoMatch,
): Promise<RentBySpecResponse> {
  const { body } = request;
  refuseUnavailable(body);
  requireOneImage(body);
  assertPlace(body, 'body');
  restoreRequestOf(body);
  await requireVerified(tx, request.identity);
  if (!('survivors' in match)) throw noExecutorMatches(match);
  const { survivors, candidates, funnel } = match;
  const isDry = body.dry_run === true;
  const rent = () => rentFirstOf(tx, deps, request, survivors);
  const { node, pod, attempts } = isDry ? await rehearse(tx, rent) : await rent();
  const others = survivors.filter(({ id }) => id !== node.id).slice(0, MAX_ALTERNATIVES);
  const nowMs = deps.clock.now();
  const selected = await requireExecutor(tx, node.id);
  const annotations = await deps.annotationsOf(tx, request.identity.accountId);
  const personal = (id: string) => personalFields(annotations, id);
  return {
    success: true,
    dry_run: isDry,
    pod_id: isDry ? null : pod.id,
    id: isDry ? null : pod.id,
    pod: isDry ? null : pod,
    template_id: pod.template_id,
    price_per_hour: pod.price,
    selected_executor: executorResponse(selected, { nowMs, summary: false, personal }),
    candidates,
    alternatives_considered: others.map((other) => alternative(other, body)),
    attempts: isDry ? 0 : attempts,
    ...(request.isExplained ? { funnel, nearest: [] } : {}),
  };
}

/**
 * Rents the first of `survivors` that still meets the specification. Concurrent rentals may have taken others.
 * Each failed attempt is rolled back before the next.
 */
export async function rentFirstOf(
  tx: Db,
  deps: RentDeps,
  request: RentBySpec,
  survivors: readonly MarketNode[],
): Promise<{ node: MarketNode; pod: RentExecutorResponse; attempts: number }> {
  for (const [index, { id }] of survivors.entries()) {
    try {
      const rented = await inSavepoint(tx, () => rentIfStill(tx, deps, request, id));
      return { ...rented, attempts: index + 1 };
    } catch (error) {
      if (!(error instanceof ApiError) || !LOST_RACE.has(error.code)) throw error;
    }
  }
  throw new ApiError('node_rent_in_progress', 'Other renters have just rented every matching node');
}

async function rentIfStill(tx: Db, deps: RentDeps, request: RentBySpec, id: string) {
  await lockRow(tx, 'executors', id);
  const node = await findOnMarket(tx, id);
  const isMet = (candidate: Candidate) =>
    constraintsOf(request.body).every(({ keep }) => keep(candidate));
  if (node === undefined || !isMet({ id, machineName: machineNameOf(node), node })) {
    throw new ApiError('node_unavailable', 'The node no longer meets the specification');
  }
  return { node, pod: await rentIn(tx, deps, { ...request, executorId: id }) };
}

/** Clients read these members from the top level of the error. */
function noExecutorMatches({ message, hint, ...found }: NoMatch): ApiError {
  const flat = { code: 'no_executor_matches_spec', ...found };
  return new ApiError('no_executor_matches_spec', message, { hint, extra: flat, details: flat });
}

function hourlyPrice(node: MarketNode, spec: NodeSpec): number {
  return microToUsd(node.price_uusd_per_gpu_hour * gpusFor(node, spec.gpu_count ?? null));
}

function alternative(node: MarketNode, spec: NodeSpec): SpecAlternative {
  return {
    id: node.id,
    machine_name: machineNameOf(node),
    gpu_count: gpuTotalOf(node),
    available_gpu_count: node.slots_free,
    price_per_gpu: microToUsd(node.price_uusd_per_gpu_hour),
    price_per_hour: hourlyPrice(node, spec),
    download_mbps: node.download_mbps ?? 0,
    country_code: locationOf(node)?.country_code ?? '',
  };
}
