import { createPublicKey, sign, verify } from 'node:crypto';
import { expect, it } from 'vitest';
import { createSshKeyPair, publicKeyOf } from './openssh-key.ts';

/** Reads one length-prefixed field at `offset`. */
function fieldAt(bytes: Buffer, offset: number): { value: Buffer; next: number } {
  const length = bytes.readUInt32BE(offset);
  return { value: bytes.subarray(offset + 4, offset + 4 + length), next: offset + 4 + length };
}

it('writes a private key that matches the public key', () => {
  const bytes = (length: number) => new Uint8Array(length).fill(7);
  const pair = createSshKeyPair({ uuid: () => '', bytes, int: () => 0 }, 'someone');
  expect(pair.publicKey).toMatch(/^ssh-ed25519 AAAAC3NzaC1lZDI1NTE5\S+ someone$/);

  const file = Buffer.from(pair.privateKeyPem.split('\n').slice(1, -2).join(''), 'base64');
  expect(file.subarray(0, 15).toString()).toBe('openssh-key-v1\0');
  let offset = 15;
  const fields: Buffer[] = [];
  for (let index = 0; index < 3; index += 1) {
    const field = fieldAt(file, offset);
    fields.push(field.value);
    offset = field.next;
  }
  expect(fields.map(String)).toEqual(['none', 'none', '']);
  expect(file.readUInt32BE(offset)).toBe(1);
  const publicBlob = fieldAt(file, offset + 4);
  expect(publicBlob.value.toString('base64')).toBe(pair.publicKey.split(' ')[1]);

  const secret = fieldAt(file, publicBlob.next).value;
  expect(secret.length % 8).toBe(0);
  const type = fieldAt(secret, 8);
  const publicRaw = fieldAt(secret, type.next);
  const keys = fieldAt(secret, publicRaw.next);
  const pkcs8 = Buffer.concat([
    Buffer.from('302e020100300506032b657004220420', 'hex'),
    keys.value.subarray(0, 32),
  ]);
  const privateKey = { key: pkcs8, format: 'der', type: 'pkcs8' } as const;
  const message = Buffer.from('message');
  const publicKey = createPublicKey({
    key: Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), publicRaw.value]),
    format: 'der',
    type: 'spki',
  });
  expect(verify(null, message, publicKey, sign(null, message, privateKey))).toBe(true);
});

it('reads no key from a file that was cut at any byte', () => {
  const bytes = (length: number) => new Uint8Array(length).fill(7);
  const pair = createSshKeyPair({ uuid: () => '', bytes, int: () => 0 }, 'someone');
  const pem = pair.privateKeyPem;
  expect(`${publicKeyOf(pem)} someone`).toBe(pair.publicKey);
  // Only the line break at the end may be missing.
  const readable = [...pem].flatMap((_, end) =>
    publicKeyOf(pem.slice(0, end)) === null ? [] : [end],
  );
  expect(readable).toEqual([pem.length - 1]);
});
