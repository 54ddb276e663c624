/** Dictionaries of packed documents. The last one stays in memory, because each check needs it and its text is long. */
import type { EvidenceRow, StoreDb } from '../store/tables.ts';
import { addDictionary, type Dictionary, findDictionary, type Likeness } from './evidence.store.ts';

type Document = Pick<EvidenceRow, 'verdict'> & { document: string };

export function createDictionaries() {
  /** Dictionaries are neither changed nor deleted. */
  let last: { key: string; dictionary: Dictionary } | null = null;

  return {
    /**
     * Returns the dictionary for documents of these versions. The first passed document becomes the dictionary, because
     * others may lack most of their parts; before, returns undefined.
     */
    async of(
      tx: StoreDb,
      likeness: Likeness,
      { verdict, document }: Document,
    ): Promise<Dictionary | undefined> {
      const key = `${likeness.program} ${likeness.check_policy_hash}`;
      if (last?.key === key) return last.dictionary;
      const dictionary = await findDictionary(tx, likeness);
      if (dictionary !== undefined) last = { key, dictionary };
      if (dictionary !== undefined || verdict !== 'ok') return dictionary;
      // Stays out of memory until the transaction is committed.
      await addDictionary(tx, likeness, document);
      return findDictionary(tx, likeness);
    },
  };
}
