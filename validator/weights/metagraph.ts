/** Who is registered, and with which uid: the port to the chain, and what stands in for it (validator reference 8.1). */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { EvidenceStore, NeuronsTable, StoreDb } from '../store/tables.ts';
import { type Neuron, Neurons } from './cycle-set.ts';

export type Registrations = {
  /** The chain's present block; null where there is no chain. */
  block: number | null;
  neurons: Neuron[];
};

export type Metagraph = {
  /** `wanted` are those that weights are to be given to, in an order that does not change. Rejects when it cannot be read. */
  read(wanted: readonly Hotkey[]): Promise<Registrations>;
};

const MAX_FILE_BYTES = 16 * 1024 * 1024;

const MetagraphFile = z.strictObject({ block: z.int().min(0).nullable(), neurons: Neurons });

/** A file that somebody keeps up to date, `{"block", "neurons": [{"uid", "hotkey"}]}`, read anew each time. */
export function fileMetagraph(path: string): Metagraph {
  return {
    async read() {
      const text = readFileSync(path, 'utf8');
      if (text.length > MAX_FILE_BYTES) throw new Error(`${path} is longer than a metagraph`);
      return MetagraphFile.parse(JSON.parse(text));
    },
  };
}

/** Of a marketplace on one's own machine: whoever is wanted is registered, the validator first. */
export function localMetagraph(store: EvidenceStore, validator: Hotkey): Metagraph {
  return {
    async read(wanted) {
      await addNeurons(store, [validator, ...wanted]);
      return { block: null, neurons: Neurons.parse(await listNeurons(store)) };
    },
  };
}

// MERGED validator/weights/metagraph.ts: Queries of the neurons of a marketplace on one's own machine.
/** Gives those who have none the next uids, from 0, in this order. */
export async function addNeurons(store: StoreDb, hotkeys: readonly string[]): Promise<void> {
  const present = await listNeurons(store);
  const known = new Set(present.map(({ hotkey }) => hotkey));
  const missing = [...new Set(hotkeys)].filter((hotkey) => !known.has(hotkey));
  const first = (present.at(-1)?.uid ?? -1) + 1;
  for (const [index, hotkey] of missing.entries()) {
    await store
      .insertInto('neurons')
      .values({ uid: first + index, hotkey })
      .execute();
  }
}

/** By uid. */
export function listNeurons(store: StoreDb): Promise<NeuronsTable[]> {
  return store.selectFrom('neurons').selectAll().orderBy('uid').execute();
}
