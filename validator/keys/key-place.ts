/** Where a key lies, and how it is opened there. */
import type { Random } from '#shared/runtime/random.ts';
import type { LocalSigner } from '#shared/signing/sr25519.ts';
import { readKeyFile } from './key-file.ts';
import { readPrivateText } from './private-file.ts';
import { readOrCreateSeedFile, readSeedFile } from './seed-file.ts';
import { keyringSigner } from './signer.ts';

/** Paths alone: no key and no passphrase is ever part of it. */
export type KeyPlace =
  | { kind: 'seed'; path: string }
  | { kind: 'key-file'; path: string; passphraseFile: string };

/** Rejects with ConfigError for a file that others may read or that holds something else; without `random` a missing seed is not made. */
export async function openKey(place: KeyPlace, random: Random | null): Promise<LocalSigner> {
  if (place.kind === 'key-file') {
    return readKeyFile(place.path, readPrivateText(place.passphraseFile));
  }
  const { path } = place;
  return keyringSigner(random === null ? readSeedFile(path) : readOrCreateSeedFile(path, random));
}
