/** Xids by card and code, out of the store's rows. Pure. */
import type { SeenCard, XidRow } from './gpu-health.store.ts';

export type CountedXid = { uuid: string; code: number; count: number; lastMs: number };

/** Those of cards that were seen on this host; a row names a card by its place on the bus. */
export function countXids(rows: readonly XidRow[], cards: readonly SeenCard[]): CountedXid[] {
  const uuids = new Map(cards.map(({ pci, uuid }) => [pci, uuid]));
  const counted = new Map<string, CountedXid>();
  for (const { pci, code, at_ms: atMs } of rows) {
    const uuid = uuids.get(pci);
    if (uuid === undefined) continue;
    const key = `${uuid} ${code}`;
    const before = counted.get(key);
    counted.set(key, {
      ...{ uuid, code },
      count: (before?.count ?? 0) + 1,
      lastMs: Math.max(before?.lastMs ?? 0, atMs),
    });
  }
  return [...counted.values()];
}
