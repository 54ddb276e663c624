/** Creates the SSH key of a hidden rental: an ed25519, RSA or ECDSA key as ssh-keygen makes it. */
import { generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import type { Random } from '#shared/runtime/random.ts';
import { createSshKeyPair, type SshKeyPair } from '#shared/signing/openssh-key.ts';
import type { KeyPlan } from './rental.plan.ts';

const generate = promisify(generateKeyPair);

export async function createLoginKey(
  random: Random,
  { type, bits, comment }: KeyPlan,
): Promise<SshKeyPair> {
  const pair = await createPair(random, { type, bits, comment });
  return { ...pair, publicKey: pair.publicKey.trimEnd() };
}

async function createPair(random: Random, { type, bits, comment }: KeyPlan): Promise<SshKeyPair> {
  if (type === 'ed25519') return createSshKeyPair(random, comment);
  if (type === 'rsa') {
    const { publicKey, privateKey } = await generate('rsa', { modulusLength: bits });
    const { n = '', e = '' } = publicKey.export({ format: 'jwk' });
    const parts = ['ssh-rsa', mpint(e), mpint(n)];
    return {
      privateKeyPem: String(privateKey.export({ type: 'pkcs1', format: 'pem' })),
      publicKey: lineOf('ssh-rsa', parts, comment),
    };
  }
  const { publicKey, privateKey } = await generate('ec', { namedCurve: 'prime256v1' });
  const name = 'ecdsa-sha2-nistp256';
  return {
    privateKeyPem: String(privateKey.export({ type: 'sec1', format: 'pem' })),
    publicKey: lineOf(name, [name, 'nistp256', pointOf(publicKey)], comment),
  };
}

/** The uncompressed point of an ECDSA key (SEC 1, 2.3.3). */
function pointOf(key: KeyObject): Buffer {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  return Buffer.concat([Buffer.of(4), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]);
}

/** An unsigned number of a JWK as a multiple precision integer (RFC 4251, 5). */
function mpint(encoded: string): Buffer {
  const bytes = Buffer.from(encoded, 'base64url');
  const isNegative = ((bytes[0] ?? 0) & 0x80) !== 0;
  return isNegative ? Buffer.concat([Buffer.of(0), bytes]) : bytes;
}

function lineOf(type: string, parts: readonly (string | Buffer)[], comment: string): string {
  const fields = parts.flatMap((part) => {
    const bytes = Buffer.from(part);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return [length, bytes];
  });
  return `${type} ${Buffer.concat(fields).toString('base64')} ${comment}`;
}
