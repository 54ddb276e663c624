/** Composes the routes of validators: nodes to check, verdicts, weights and the release digest. */
import type { HttpServer } from '#shared/http/server.ts';
import type { CentralDeps } from '../../platform/central-deps.ts';
import { createSetWeights } from './set-weights.service.ts';
import { createSignedDigests } from './signed-digest.ts';
import {
  registerSetWeightsRoutes,
  registerUpdaterRoutes,
  registerValidatorRoutes,
} from './validator.routes.ts';
import { createValidators } from './validator.service.ts';

/** Registers the routes below /api; `wake` queues an immediate sync of an executor. */
export function registerValidators(
  api: HttpServer,
  { ports }: CentralDeps,
  wake: (executorId: string) => void,
): void {
  const { db, clock, agents, addresses = null } = ports;
  registerValidatorRoutes(api, createValidators({ db, clock, agents, addresses, wake }));
  registerSetWeightsRoutes(api, createSetWeights({ db, clock }));
  registerUpdaterRoutes(api, createSignedDigests({ clock, agents }));
}
