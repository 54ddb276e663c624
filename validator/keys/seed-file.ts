/** Hotkeys at rest as seeds: a file of 64 hex digits, mode 0600, made once (validator reference 3). */
import { existsSync } from 'node:fs';
import { ConfigError } from '#shared/runtime/config.ts';
import { makePrivateFile } from '#shared/runtime/files.ts';
import type { Random } from '#shared/runtime/random.ts';
import { readPrivateText } from './private-file.ts';

const SEED_BYTES = 32;

/** The 32 byte seed in `path`. Throws ConfigError when there is none, others may read the file or its content has another form. */
export function readSeedFile(path: string): Uint8Array {
  const text = readPrivateText(path).trim();
  if (!/^(0x)?[0-9a-f]{64}$/i.test(text)) {
    throw new ConfigError(`${path} does not hold a seed: 64 hex digits are expected`);
  }
  return new Uint8Array(Buffer.from(text.replace(/^0x/i, ''), 'hex'));
}

/** Reads the seed in `path`, making a random one first where there is no file. */
export function readOrCreateSeedFile(path: string, random: Random): Uint8Array {
  if (existsSync(path)) return readSeedFile(path);
  const seed = random.bytes(SEED_BYTES);
  makePrivateFile(path, `${Buffer.from(seed).toString('hex')}\n`, random);
  return seed;
}
