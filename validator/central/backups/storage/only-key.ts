/**
 * A repository has one key. Anyone who may append could otherwise add a key that restic cannot read, and restic reads
 * all keys before it restores.
 */
import { isKey, secondKey } from './restic-format.ts';
import type { RepositoryFile } from './restic-protocol.ts';

/** Keys of one repository. */
export type RepositoryKeys = {
  /** Returns true if the repository has a configuration, which `restic init` writes after the key. */
  isInitialised(): Promise<boolean>;
  names(): Promise<string[]>;
  /** Deletes a key. The quota counts its block until the next count. */
  remove(name: string): Promise<void>;
};

/**
 * Stores a file with `store`, which returns false if the file exists. Throws 403 for a second key of an initialised
 * repository. Deletes keys without a configuration first, because an interrupted `restic init` leaves them and restic
 * may open the repository with the wrong one. Two concurrent keys refuse each other, and `restic init` can be repeated.
 */
export async function storeWithOnlyKey(
  file: RepositoryFile,
  keys: RepositoryKeys,
  store: () => Promise<boolean>,
): Promise<boolean> {
  if (file === 'config' || !isKey(file)) return store();
  const others = async () => (await keys.names()).filter((name) => name !== file.name);
  const present = await others();
  if (present.length > 0 && (await keys.isInitialised())) throw secondKey();
  for (const name of present) await keys.remove(name);
  const isNew = await store();
  if (isNew && (await others()).length > 0) {
    await keys.remove(file.name);
    throw secondKey();
  }
  return isNew;
}
