/** Registered hotkeys and their uids: the port to the chain and its two local substitutes. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { EvidenceStore, NeuronsTable, StoreDb } from '../store/tables.ts';
import { type Neuron, Neurons } from './cycle-set.ts';

export type Registrations = {
  /** Current block of the chain; null without a chain. */
  block: number | null;
  neurons: Neuron[];
};

export type Metagraph = {
  /** `wanted` are the hotkeys that earn weight, in a stable order. Rejects when the source cannot be read. */
  read(wanted: readonly Hotkey[]): Promise<Registrations>;
};

const MAX_FILE_BYTES = 16 * 1024 * 1024;

const MetagraphFile = z.strictObject({ block: z.int().min(0).nullable(), neurons: Neurons });

/** Reads `{"block", "neurons": [{"uid", "hotkey"}]}` from a file that the operator maintains, at every call. */
export function fileMetagraph(path: string): Metagraph {
  return {
    async read() {
      const text = readFileSync(path, 'utf8');
      if (text.length > MAX_FILE_BYTES)
        throw new Error(`${path} is larger than a metagraph file can be`);
      return MetagraphFile.parse(JSON.parse(text));
    },
  };
}

/** Registers every wanted hotkey of a local marketplace, the validator first. */
export function localMetagraph(store: EvidenceStore, validator: Hotkey): Metagraph {
  return {
    async read(wanted) {
      await addNeurons(store, [validator, ...wanted]);
      return { block: null, neurons: Neurons.parse(await listNeurons(store)) };
    },
  };
}

/** Assigns the next free uids, from 0, to hotkeys that have no uid. */
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

/** Returns the registered hotkeys of a local marketplace, ordered by uid. */
export function listNeurons(store: StoreDb): Promise<NeuronsTable[]> {
  return store.selectFrom('neurons').selectAll().orderBy('uid').execute();
}
