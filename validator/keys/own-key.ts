/** What a start would refuse of the own key: asked before one. */
import { existsSync } from 'node:fs';
import { ConfigError } from '#shared/runtime/config.ts';
import { isSystemdCredential } from '#shared/runtime/secrets.ts';
import { type KeyLocation, openKey } from './key-file.ts';
import { trustedHotkeys } from './trusted-hotkeys.ts';

/**
 * In words; null where a start would take it. A seed that is not there is made by the start, and credentials of
 * systemd are there in the service alone.
 */
export async function keyProblem(
  place: KeyLocation,
  keySetFile: string | undefined,
): Promise<string | null> {
  const files = place.kind === 'seed' ? [place.path] : [place.path, place.passphraseFile];
  const isLater = (path: string) => place.kind === 'seed' || isSystemdCredential(path);
  if (files.some((path) => !existsSync(path) && isLater(path))) return null;
  try {
    trustedHotkeys((await openKey(place, null)).hotkey, keySetFile);
    return null;
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
}
