import { createHash } from 'node:crypto';
import ssh2, { type PublicKeyAuthContext } from 'ssh2';
import { describe, expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { createSshKeyPair, sshFingerprint } from '#shared/signing/openssh-key.ts';
import { createSecurityKey } from '../../test/fakes/external/security-key.ts';
import { hasSigned, offeredKey, parseAuthorizedKeys, parseHardwareKey } from './authorized-keys.ts';

const pair = createSshKeyPair(systemRandom, 'me');
const other = createSshKeyPair(systemRandom, 'other');

type Claim = Pick<PublicKeyAuthContext, 'key'> & Partial<PublicKeyAuthContext>;

/** Casts the parts of ssh2's context that the code uses. */
const claim = (parts: Claim) => parts as PublicKeyAuthContext;

function keyOf(privateKeyPem: string) {
  const parsed = ssh2.utils.parseKey(privateKeyPem);
  if (parsed instanceof Error) throw parsed;
  return parsed;
}

it('skips lines that are not keys, and prints fingerprints like ssh-keygen', () => {
  const lines = ['', 'rubbish', pair.publicKey, pair.privateKeyPem, 'ssh-dss AAAA'];
  const keys = parseAuthorizedKeys(lines);
  expect(keys.map(({ fingerprint }) => fingerprint)).toEqual([sshFingerprint(pair.publicKey)]);
});

it('accepts only a signature of this session by this key', () => {
  const keys = parseAuthorizedKeys([pair.publicKey]);
  const [mine] = keys;
  const own = keyOf(pair.privateKeyPem);
  const key = { algo: 'ssh-ed25519', data: own.getPublicSSH() };
  const blob = createHash('sha256').update('session').digest();
  const signature = own.sign(blob);
  expect(offeredKey(claim({ key }), keys)).toBe(mine);
  const stranger = { algo: 'ssh-ed25519', data: keyOf(other.privateKeyPem).getPublicSSH() };
  expect(offeredKey(claim({ key: stranger }), keys)).toBeNull();
  if (mine === undefined) throw new Error('no key');
  expect(hasSigned(claim({ key, blob, signature }), mine)).toBe(true);
  expect(hasSigned(claim({ key, blob: Buffer.from('other'), signature }), mine)).toBe(false);
  const forged = keyOf(other.privateKeyPem).sign(blob);
  expect(hasSigned(claim({ key, blob, signature: forged }), mine)).toBe(false);
  expect(hasSigned(claim({ key }), mine)).toBe(false);
});

const TYPES = ['sk-ssh-ed25519@openssh.com', 'sk-ecdsa-sha2-nistp256@openssh.com'] as const;
const SESSION = Buffer.from('this very session');

/** Returns a signature without its type, as ssh2 passes it on. */
function handedOn(signature: Buffer, type: string): Buffer {
  return signature.subarray(4 + type.length + 4);
}

describe.each(TYPES)('a key of type %s', (type) => {
  const device = createSecurityKey(type);
  const key = parseHardwareKey(device.line);
  const signature = () => handedOn(device.signatureOf(SESSION), type);

  it('verifies its own signatures repeatedly', () => {
    for (let round = 0; round < 50; round += 1)
      expect(key?.verify(SESSION, signature())).toBe(true);
  });

  it('rejects signatures over other data or by another key', () => {
    expect(key?.verify(Buffer.from('another session'), signature())).toBe(false);
    const other = createSecurityKey(type).signatureOf(SESSION);
    expect(key?.verify(SESSION, handedOn(other, type))).toBe(false);
    const untouched = parseHardwareKey(device.line);
    const counted = signature();
    counted.writeUInt8(0xff, counted.length - 1);
    expect(untouched?.verify(SESSION, counted)).toBe(false);
  });

  it('rejects a signature that was made without touching the device', () => {
    const alone = createSecurityKey(type, false);
    const parsed = parseHardwareKey(alone.line);
    expect(parsed).not.toBeNull();
    expect(parsed?.verify(SESSION, handedOn(alone.signatureOf(SESSION), type))).toBe(false);
  });

  it('rejects malformed signatures', () => {
    for (const bytes of [0, 1, 5, 69, 200]) {
      expect(key?.verify(SESSION, Buffer.alloc(bytes, 0xff))).toBe(false);
    }
  });
});

it.each([
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJJ/tAzpR9ZwrM6Ejqg2T6Vm1Z2sCfIHmPpRUSk/4sIW',
  'sk-ssh-ed25519@openssh.com',
  'sk-ssh-ed25519@openssh.com AAAA',
  `sk-ssh-ed25519@openssh.com ${Buffer.alloc(90, 7).toString('base64')}`,
  '',
])('does not parse "%s" as a security key', (line) => {
  expect(parseHardwareKey(line)).toBeNull();
});
