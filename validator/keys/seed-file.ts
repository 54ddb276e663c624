/** Hotkeys at rest as seeds: a file of 64 hex digits, mode 0600, made once (validator reference 3). */
import type { Random } from '#shared/random.ts';
import { readPrivateText, writePrivateText } from './private-file.ts';

const SEED_BYTES = 32;

/** The 32 byte seed in `path`. Throws when others may read the file or its content has another form. */
export function readSeedFile(path: string): Uint8Array {
  const text = readPrivateText(path).trim();
  if (!/^(0x)?[0-9a-f]{64}$/i.test(text)) {
    throw new Error(`${path} does not hold a seed: 64 hex digits are expected`);
  }
  return new Uint8Array(Buffer.from(text.replace(/^0x/i, ''), 'hex'));
}

/** Reads the seed in `path`, making a random one first where there is no file. */
export function readOrCreateSeedFile(path: string, random: Random): Uint8Array {
  try {
    return readSeedFile(path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
  const seed = random.bytes(SEED_BYTES);
  writePrivateText(path, Buffer.from(seed).toString('hex'));
  return seed;
}
