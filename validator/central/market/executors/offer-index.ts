/**
 * Indexes of the offered nodes: groups of nodes with equal figures, places and ids. A search then need not examine every
 * node.
 */
import { countryNamesOf, regionNamesOf } from './node-figures.ts';
import { byPrice, byScore, type Listed, listAfter } from './offer-order.ts';
import { type Area, createPlaceGrid } from './place-grid.ts';

/** Nodes with equal values of every figure of `groupKey`, in two orders. Both lists contain the same nodes. */
export type OfferGroup = { byPrice: readonly Listed[]; byScore: readonly Listed[] };

/** The lists change in place, so they are valid until the next `await`. */
export type OfferIndex = {
  groups(): Iterable<OfferGroup>;
  /** Every node in the circle, and some nodes near it. */
  near(area: Area): Iterable<Listed>;
  withIds(ids: ReadonlySet<string>): Iterable<Listed>;
};

/** Maximum number of stored texts of locations; a market has some thousand. */
const MAX_LOCATIONS = 100_000;

/** Starts without nodes. */
export function createOfferIndex() {
  const groups = new Map<string, { byPrice: Listed[]; byScore: Listed[] }>();
  const byId = new Map<string, Listed>();
  const grid = createPlaceGrid();
  const placeNames = createPlaceNames();
  const keyOf = (node: Listed) => groupKey(node, placeNames(node.locationJson));

  function applyToGroup(key: string, removed: readonly Listed[], added: readonly Listed[]): void {
    const group = groups.get(key) ?? { byPrice: [], byScore: [] };
    group.byPrice = listAfter(group.byPrice, removed, added, byPrice);
    group.byScore = listAfter(group.byScore, removed, added, byScore);
    if (group.byPrice.length === 0) groups.delete(key);
    else groups.set(key, group);
  }

  const index: OfferIndex = {
    groups: () => groups.values(),
    near: (area) => grid.near(area),
    *withIds(ids) {
      for (const id of ids) {
        const node = byId.get(id);
        if (node !== undefined) yield node;
      }
    },
  };

  return {
    index,

    /** A changed node is first removed and then added. */
    apply(removed: readonly Listed[], added: readonly Listed[]): void {
      for (const node of removed) {
        byId.delete(node.id);
        grid.remove(node);
      }
      for (const node of added) {
        byId.set(node.id, node);
        grid.add(node);
      }
      const gone = Map.groupBy(removed, keyOf);
      const come = Map.groupBy(added, keyOf);
      for (const key of new Set([...gone.keys(), ...come.keys()])) {
        applyToGroup(key, gone.get(key) ?? [], come.get(key) ?? []);
      }
    },
  };
}

/**
 * Constraints with the shortcut `group` read only these figures. Figures that differ between most nodes, such as free
 * disk space, are left out, because they would make a group of each node.
 */
function groupKey({ machineName, collateralDeposited, node }: Listed, place: string): string {
  return JSON.stringify([
    machineName,
    place,
    collateralDeposited,
    node.slots_free,
    node.slots_total,
    node.gpu_count,
    node.min_gpu_count,
    node.can_split,
    node.gpu_memory_mib,
    node.sysbox_runtime,
    node.nvlink,
  ]);
}

/** Returns a function that returns the names of country and region as one text. Caches the texts by location. */
function createPlaceNames(): (locationJson: string | null) => string {
  const known = new Map<string, string>();
  return (locationJson) => {
    if (locationJson === null) return '';
    const names =
      known.get(locationJson) ??
      JSON.stringify([countryNamesOf(locationJson), regionNamesOf(locationJson)]);
    if (known.size >= MAX_LOCATIONS) known.clear();
    known.set(locationJson, names);
    return names;
  };
}
