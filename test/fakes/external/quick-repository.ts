/**
 * A restic repository that opens without delay. restic spends half a second at every start to derive a key from the
 * password. In these repositories the derivation is cheap, and tests have the keys. Everything else is as restic writes
 * it.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes, scryptSync } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Encryption key (32 bytes) and the two halves of the authentication key (16 bytes each), named as restic names them.
 */
export type RepositoryKey = { encrypt: Buffer; k: Buffer; r: Buffer };

const FOLDERS = ['data', 'index', 'keys', 'locks', 'snapshots'];
const NONCE_BYTES = 16;
const MAC_BYTES = 16;
/** The cheapest scrypt cost: this password needs no protection. */
const COST = { N: 2, r: 8, p: 1 };
/** Polynomial by which restic splits files into chunks; any irreducible polynomial of this degree works. */
const POLYNOMIAL = '3DA3358B4DC173'.toLowerCase();

/** Creates a repository in the folder `location`. Version 1 does not compress. */
export function writeQuickRepository(
  location: string,
  password: string,
  version: 1 | 2 = 2,
): RepositoryKey {
  for (const name of FOLDERS) mkdirSync(join(location, name), { recursive: true });
  for (const { path, content, key } of quickRepository(password, version)) {
    writeFileSync(join(location, path), content);
    if (key !== undefined) return key;
  }
  throw new Error('the repository has no configuration');
}

/** Returns the files of the repository: the key first, the configuration last. */
export function quickRepository(
  password: string,
  version: 1 | 2 = 2,
): { path: string; content: Buffer; key?: RepositoryKey }[] {
  const key = { encrypt: randomBytes(32), k: randomBytes(16), r: randomBytes(16) };
  const content = keyFile(password, key);
  const id = randomBytes(32).toString('hex');
  const config = { version, id, chunker_polynomial: POLYNOMIAL };
  return [
    { path: `keys/${createHash('sha256').update(content).digest('hex')}`, content },
    { path: 'config', content: seal(key, Buffer.from(JSON.stringify(config))), key },
  ];
}

function keyFile(password: string, { encrypt, k, r }: RepositoryKey): Buffer {
  const salt = randomBytes(64);
  const derived = scryptSync(password, salt, 64, COST);
  const user = {
    encrypt: derived.subarray(0, 32),
    k: derived.subarray(32, 48),
    r: derived.subarray(48),
  };
  const mac = { k: k.toString('base64'), r: r.toString('base64') };
  const master = JSON.stringify({ mac, encrypt: encrypt.toString('base64') });
  const data = seal(user, Buffer.from(master)).toString('base64');
  const created = '2026-01-01T00:00:00Z';
  return Buffer.from(
    JSON.stringify({ created, kdf: 'scrypt', ...COST, salt: salt.toString('base64'), data }),
  );
}

/** Encrypts as restic does: nonce, AES-256 in counter mode, Poly1305. */
export function seal(key: RepositoryKey, plain: Uint8Array): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-ctr', key.encrypt, nonce);
  const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([nonce, sealed, macOf(key, nonce, sealed)]);
}

/** Decrypts without checking the authentication tag, because the tests wrote these files. */
export function unseal(key: RepositoryKey, sealed: Buffer): Buffer {
  const decipher = createDecipheriv('aes-256-ctr', key.encrypt, sealed.subarray(0, NONCE_BYTES));
  const content = sealed.subarray(NONCE_BYTES, sealed.length - MAC_BYTES);
  return Buffer.concat([decipher.update(content), decipher.final()]);
}

/** Computes a Poly1305-AES tag. */
function macOf({ k, r }: RepositoryKey, nonce: Buffer, message: Buffer): Buffer {
  const block = createCipheriv('aes-128-ecb', k, null).setAutoPadding(false);
  const pad = numberOf(block.update(nonce));
  const factor = numberOf(r) & 0x0ffffffc0ffffffc0ffffffc0fffffffn;
  const prime = (1n << 130n) - 5n;
  let sum = 0n;
  for (let at = 0; at < message.length; at += MAC_BYTES) {
    const part = message.subarray(at, at + MAC_BYTES);
    sum = ((sum + numberOf(part) + (1n << BigInt(8 * part.length))) * factor) % prime;
  }
  const mac = ((sum + pad) % (1n << 128n)).toString(16).padStart(2 * MAC_BYTES, '0');
  return Buffer.from(mac, 'hex').reverse();
}

function numberOf(littleEndian: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(littleEndian).reverse().toString('hex')}`);
}
