/** Composes rentals: by id and by specification. */
import type { HttpServer } from '#shared/http/server.ts';
import { createRefusalRecorder } from '../../accounts/api-keys/budget-refusal.service.ts';
import { createAttachSecrets } from '../../accounts/secrets/secret.service.ts';
import type { CentralDeps } from '../../platform/central-deps.ts';
import type { MarketView } from '../executors/executor.service.ts';
import { type RentalRoutesDeps, registerRentalRoutes } from './rental.routes.ts';
import { createSpecSearch } from './spec-search.ts';

type RentalParts = Omit<
  RentalRoutesDeps,
  'clock' | 'random' | 'attachSecrets' | 'recordRefusal' | 'searchSpec'
> & { view: MarketView };

/** Registers the routes below /api. */
export function registerRentals(
  api: HttpServer,
  { ports }: CentralDeps,
  { view, ...parts }: RentalParts,
): void {
  const { db, clock, random } = ports;
  registerRentalRoutes(api, {
    ...parts,
    clock,
    random,
    searchSpec: createSpecSearch(view),
    attachSecrets: createAttachSecrets(ports),
    recordRefusal: createRefusalRecorder({ db, clock, random }),
  });
}
