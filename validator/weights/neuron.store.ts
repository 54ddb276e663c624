/** Queries of the neurons of a marketplace on one's own machine. */
import type { LedgerDb, NeuronsTable } from '../store/ledger.tables.ts';

/** Gives those who have none the next uids, from 0, in this order. */
export async function addNeurons(ledger: LedgerDb, hotkeys: readonly string[]): Promise<void> {
  const present = await listNeurons(ledger);
  const known = new Set(present.map(({ hotkey }) => hotkey));
  const missing = [...new Set(hotkeys)].filter((hotkey) => !known.has(hotkey));
  const first = (present.at(-1)?.uid ?? -1) + 1;
  for (const [index, hotkey] of missing.entries()) {
    await ledger
      .insertInto('neurons')
      .values({ uid: first + index, hotkey })
      .execute();
  }
}

/** By uid. */
export function listNeurons(ledger: LedgerDb): Promise<NeuronsTable[]> {
  return ledger.selectFrom('neurons').selectAll().orderBy('uid').execute();
}
