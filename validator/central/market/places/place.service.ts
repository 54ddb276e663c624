/** Places of nodes: entered by providers, compared with the evidence, and shown on the market. */
import type { RoundTrip } from '#shared/api/central/validator-routes.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
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

/** Stores the place, or removes it for null. The caller has locked the executor's row. */
export async function enterPlace(
  tx: Db,
  deps: PlaceDeps,
  node: ExecutorEntry,
  entered: EnterPlace | null,
): Promise<void> {
  const stored = await findPlace(tx, node.id);
  const roundTrip = parsed<RoundTrip>(stored?.round_trip_json);
  const place = entered === null ? null : locationFrom(entered);
  await recordPlace(tx, deps, node, { place, roundTrip });
}

/**
 * Compares the entered place with the latest evidence; null means that this report has no round trip. Runs with every
 * verdict, in its transaction.
 */
export async function recheckPlace(
  tx: Db,
  deps: PlaceDeps,
  node: ExecutorEntry,
  reported: RoundTrip | null,
): Promise<void> {
  const stored = await findPlace(tx, node.id);
  const place = parsed<ExecutorLocation>(stored?.entered_json);
  if (place === null && reported === null) return;
  const roundTrip = reported ?? parsed<RoundTrip>(stored?.round_trip_json);
  await recordPlace(tx, deps, node, { place, roundTrip });
}

/** The place with its evidence, as its provider sees it. */
export async function describePlace(db: Db, node: ExecutorEntry): Promise<NodeLocation> {
  const stored = await findPlace(db, node.id);
  return {
    entered: parsed<ExecutorLocation>(stored?.entered_json),
    location_check: node.location_check,
    evidence: parsed<PlaceEvidence[]>(stored?.evidence_json) ?? [],
    updated_at: stored === undefined ? null : naiveUtc(stored.updated_at),
  };
}

type Known = { place: ExecutorLocation | null; roundTrip: RoundTrip | null };

async function recordPlace(
  tx: Db,
  { clock, addresses }: PlaceDeps,
  node: ExecutorEntry,
  { place, roundTrip }: Known,
): Promise<void> {
  const address = addresses?.find(node.ip_address) ?? null;
  const trip = roundTrip === null ? null : { ...roundTrip, ms: roundedUp(roundTrip.ms) };
  const evidence = place === null ? [] : comparePlace(place, { address, roundTrip: trip });
  await putPlace(tx, {
    executor_id: node.id,
    entered_json: place === null ? null : JSON.stringify(place),
    round_trip_json: trip === null ? null : JSON.stringify(trip),
    evidence_json: JSON.stringify(evidence),
    updated_at: clock.now(),
  });
  await show(tx, node, place, place === null ? null : checkOf(evidence));
}

/** Writes the columns that the market reads, unless they are unchanged: every write renews the node's revision. */
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

/** Parses a column without validation: it contains only what this module wrote. */
function parsed<T>(json: string | null | undefined): T | null {
  return json == null ? null : (JSON.parse(json) as T);
}
