import { createHash } from 'node:crypto';
import ssh2, { type PublicKeyAuthContext } from 'ssh2';
import { expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { createSshKeyPair, sshFingerprint } from '#shared/signing/openssh-key.ts';
import { hasSigned, keyMeant, parseAuthorizedKeys } from './authorized-keys.ts';

const pair = createSshKeyPair(systemRandom, 'me');
const other = createSshKeyPair(systemRandom, 'other');

type Claim = Pick<PublicKeyAuthContext, 'key'> & Partial<PublicKeyAuthContext>;

/** The parts of ssh2's context that are read. */
const claim = (parts: Claim) => parts as PublicKeyAuthContext;

function keyOf(privateKeyPem: string) {
  const parsed = ssh2.utils.parseKey(privateKeyPem);
  if (parsed instanceof Error) throw parsed;
  return parsed;
}

it('leaves out what is no key, and names keys as ssh-keygen does', () => {
  const lines = ['', 'rubbish', pair.publicKey, pair.privateKeyPem, 'ssh-dss AAAA'];
  const keys = parseAuthorizedKeys(lines);
  expect(keys.map(({ fingerprint }) => fingerprint)).toEqual([sshFingerprint(pair.publicKey)]);
});

it('believes a signature of this very session by this very key', () => {
  const keys = parseAuthorizedKeys([pair.publicKey]);
  const [mine] = keys;
  const own = keyOf(pair.privateKeyPem);
  const key = { algo: 'ssh-ed25519', data: own.getPublicSSH() };
  const blob = createHash('sha256').update('session').digest();
  const signature = own.sign(blob);
  expect(keyMeant(claim({ key }), keys)).toBe(mine);
  const stranger = { algo: 'ssh-ed25519', data: keyOf(other.privateKeyPem).getPublicSSH() };
  expect(keyMeant(claim({ key: stranger }), keys)).toBeNull();
  if (mine === undefined) throw new Error('no key');
  expect(hasSigned(claim({ key, blob, signature }), mine)).toBe(true);
  expect(hasSigned(claim({ key, blob: Buffer.from('other'), signature }), mine)).toBe(false);
  const forged = keyOf(other.privateKeyPem).sign(blob);
  expect(hasSigned(claim({ key, blob, signature: forged }), mine)).toBe(false);
  expect(hasSigned(claim({ key }), mine)).toBe(false);
});
