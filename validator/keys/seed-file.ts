/** Hotkeys at rest: a file of 64 hex digits, mode 0600, made once (validator reference 3). */
import {
  chmodSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { Keyring } from '@polkadot/keyring';
import { cryptoWaitReady } from '@polkadot/util-crypto';
import type { Random } from '#shared/random.ts';
import { hotkeyOf } from '#shared/signing/hotkey.ts';
import type { Signer } from '#shared/signing/sr25519.ts';

const SEED_BYTES = 32;
const SS58_PREFIX = 42;

/** The 32 byte seed in `path`. Throws when others may read the file or its content has another form. */
export function readSeedFile(path: string): Uint8Array {
  const mode = statSync(path).mode & 0o777;
  if ((mode & 0o077) !== 0) {
    throw new Error(`${path} may be read by others (mode ${mode.toString(8)}): chmod 600 ${path}`);
  }
  const text = readFileSync(path, 'utf8').trim();
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
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const seed = random.bytes(SEED_BYTES);
  const file = openSync(path, 'wx', 0o600);
  try {
    writeSync(file, `${Buffer.from(seed).toString('hex')}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  chmodSync(path, 0o600);
  return seed;
}

/** The signer of a validator or provider, through the chain's own key library. */
export async function keyringSigner(seed: Uint8Array): Promise<Signer> {
  await cryptoWaitReady();
  const pair = new Keyring({ type: 'sr25519', ss58Format: SS58_PREFIX }).addFromSeed(seed);
  return { hotkey: hotkeyOf(pair.publicKey), sign: (message) => pair.sign(message) };
}
