/** Places of nodes: entered by providers, compared with the evidence, and shown in the market. */
import { z } from 'zod';
import { RoundTrip } from '#shared/api/central/validator-routes.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { NodePlacesTable } from '../../platform/database/tables/executors.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { AddressTable } from '../../platform/ports.ts';
import type { ExecutorLocation } from '../executors/executor.schemas.ts';
import { type ExecutorEntry, updateExecutor } from '../executors/executor.service.ts';
import { checkOf, comparePlace, locationFrom } from './place.plan.ts';
import type { EnterPlace, NodeLocation, PlaceEvidence } from './place.schemas.ts';
import { findPlace, putPlace } from './place.store.ts';

/** Dependencies of places. Without a table of addresses, only round trips are evidence. */
export type PlaceDeps = { clock: Clock; addresses: AddressTable | null };

/** Fractions of a millisecond in which round trips are stored. */
const DECIMALS_OF_MS = 100;
/** Time for which a round trip is evidence. It is limited, because a validator may move or end. */
const TRIP_MS = 7 * 86_400_000;

/** Latest round trip of each validator by hotkey, with the time of its report. */
const Trips = z.record(z.string(), RoundTrip.extend({ at: z.int() })).catch(() => ({}));
type Trips = z.output<typeof Trips>;

/** Report of a validator about a node. `roundTrip` is null if the validator measured none. */
export type PlaceReport = { validator: Hotkey; roundTrip: RoundTrip | null };

/** Stores the place; null removes it. The caller has locked the executor's row. */
export async function enterPlace(
  tx: Db,
  deps: PlaceDeps,
  node: ExecutorEntry,
  entered: EnterPlace | null,
): Promise<void> {
  const stored = await findPlace(tx, node.id);
  const place = entered === null ? null : locationFrom(entered);
  await recordPlace(tx, deps, node, { place, trips: tripsIn(stored) });
}

/** Compares the entered place with the latest evidence. Runs with every verdict, in its transaction. */
export async function recheckPlace(
  tx: Db,
  deps: PlaceDeps,
  node: ExecutorEntry,
  { validator, roundTrip }: PlaceReport,
): Promise<void> {
  const stored = await findPlace(tx, node.id);
  const place = parsed<ExecutorLocation>(stored?.entered_json);
  if (place === null && roundTrip === null) return;
  const trips = tripsIn(stored);
  if (roundTrip !== null) {
    trips[validator] = { ...roundTrip, ms: roundedUp(roundTrip.ms), at: deps.clock.now() };
  }
  await recordPlace(tx, deps, node, { place, trips });
}

/** Returns the place with its evidence, as its provider sees it. */
export async function describePlace(db: Db, node: ExecutorEntry): Promise<NodeLocation> {
  const stored = await findPlace(db, node.id);
  return {
    entered: parsed<ExecutorLocation>(stored?.entered_json),
    location_check: node.location_check,
    evidence: parsed<PlaceEvidence[]>(stored?.evidence_json) ?? [],
    updated_at: stored === undefined ? null : naiveUtc(stored.updated_at),
  };
}

type Known = { place: ExecutorLocation | null; trips: Trips };

async function recordPlace(
  tx: Db,
  { clock, addresses }: PlaceDeps,
  node: ExecutorEntry,
  { place, trips }: Known,
): Promise<void> {
  const nowMs = clock.now();
  const address = addresses?.find(node.ip_address) ?? null;
  const valid = Object.entries(trips).filter(([, { at }]) => nowMs - at < TRIP_MS);
  const roundTrips = valid.map(([, trip]) => trip);
  const evidence = place === null ? [] : comparePlace(place, { address, roundTrips });
  await putPlace(tx, {
    executor_id: node.id,
    entered_json: place === null ? null : JSON.stringify(place),
    round_trip_json: valid.length === 0 ? null : JSON.stringify(Object.fromEntries(valid)),
    evidence_json: JSON.stringify(evidence),
    updated_at: nowMs,
  });
  await show(tx, node, place, place === null ? null : checkOf(evidence));
}

/**
 * Writes the columns that the market reads. Skips unchanged columns, because every write renews the node's revision.
 */
async function show(
  tx: Db,
  node: ExecutorEntry,
  place: ExecutorLocation | null,
  check: ExecutorEntry['location_check'],
): Promise<void> {
  const shown = check === 'contradicted' ? null : place;
  const json = shown === null ? null : JSON.stringify(shown);
  if (json === node.location_json && check === node.location_check) return;
  await updateExecutor(tx, node.id, {
    location_json: json,
    lat: shown?.lat ?? null,
    lon: shown?.lon ?? null,
    location_check: check,
  });
}

/** Rounds up, because the figure is an upper bound. */
function roundedUp(ms: number): number {
  return Math.ceil(ms * DECIMALS_OF_MS) / DECIMALS_OF_MS;
}

function tripsIn(stored: NodePlacesTable | undefined): Trips {
  return Trips.parse(parsed(stored?.round_trip_json) ?? {});
}

/** Parses a column without validation, because only this module writes it. */
function parsed<T>(json: string | null | undefined): T | null {
  return json == null ? null : (JSON.parse(json) as T);
}
