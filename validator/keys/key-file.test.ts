import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AccountProof, isProofOf } from '#shared/signing/account-proof.ts';
import { publicKeyOf } from '#shared/signing/hotkey.ts';
import { SignedKeySet, trustedBy } from '#shared/signing/key-set.ts';
import { createSigner, verifySr25519 } from '#shared/signing/sr25519.ts';
import { readValidatorConfig } from '../config.ts';
import { encryptSeed, ownKeyPlace, proveAccountOf, signKeySetFile } from './key-commands.ts';
import { readKeyFile, writeKeyFile } from './key-file.ts';
import { openKey } from './key-place.ts';

const PASSPHRASE = 'correct horse battery';
const SEED = new Uint8Array(32).fill(7);
const OWN = createSigner(SEED);
/** The well-known development account, written by the chain's own library. */
const ALICE = {
  encoded:
    'OByN3KDzBhklesgx1YeLI5uBxi0h5UVOlT1vcR4o8scAAAIAAQAAAAgAAACgHH93HCPvH/9v8Js9D0IEipjQjxSB6ytiA+wuMEQ1uAbcJqWTZNqOke/KJoX+3JRfcuaJDbUMfJd4Hl4ducFAdg8Wf1V2Am0uZTpZHFamrO6t9/WQDS2fcBlJh+1BUEz44p2/ekpt43Sp0tgCXlPfkga4krD7E94t3LvkhBqNw8uDxCy3+1+UotpVpGjn5MsOWJax2qx7MPY4xUJj',
  encoding: { content: ['pkcs8', 'sr25519'], type: ['scrypt', 'xsalsa20-poly1305'], version: '3' },
  address: '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY',
  meta: { name: 'alice' },
};
const folder = mkdtempSync(join(tmpdir(), 'podwright-key-file-'));
const at = (name: string) => join(folder, name);
const put = (name: string, text: string) => {
  writeFileSync(at(name), text, { mode: 0o600 });
  return at(name);
};

const environment = {
  VALIDATOR_CENTRAL_URL: 'http://localhost/api',
  VALIDATOR_CENTRAL_HOTKEY: OWN.hotkey,
};
const keyFile = {
  VALIDATOR_KEY_FILE: at('good.json'),
  VALIDATOR_KEY_PASSPHRASE_FILE: at('passphrase'),
};

/** Opening one takes most of a second: that is what keeps guesses dear. */
let good: Record<string, unknown>;
beforeAll(async () => {
  put('hotkey.seed', Buffer.from(SEED).toString('hex'));
  put('passphrase', `${PASSPHRASE}\n`);
  const said = await encryptSeed([at('hotkey.seed'), at('good.json'), at('passphrase')]);
  expect(said).toContain(OWN.hotkey);
  good = JSON.parse(readFileSync(at('good.json'), 'utf8'));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('an encrypted key file', () => {
  it('gives the signer back, and is its owner’s alone', async () => {
    const config = readValidatorConfig({ ...environment, ...keyFile });
    const signer = await openKey(ownKeyPlace(config), null);
    expect(signer.hotkey).toBe(OWN.hotkey);
    const message = new TextEncoder().encode('message');
    const publicKey = publicKeyOf(signer.hotkey) ?? new Uint8Array(32);
    expect(verifySr25519(message, signer.sign(message), publicKey)).toBe(true);
    expect(statSync(at('good.json')).mode & 0o777).toBe(0o600);
    expect(readFileSync(at('good.json'), 'utf8')).not.toContain(Buffer.from(SEED).toString('hex'));
  });

  it('is read as the chain’s own tools write it', async () => {
    const path = put('alice.json', JSON.stringify(ALICE));
    expect((await readKeyFile(path, PASSPHRASE)).hotkey).toBe(ALICE.address);
  });

  it('is never written over another, nor under a short passphrase', async () => {
    await expect(writeKeyFile(at('good.json'), SEED, PASSPHRASE)).rejects.toThrow(/exists already/);
    await expect(writeKeyFile(at('short.json'), SEED, '1234567')).rejects.toThrow(/fewer than 8/);
  });

  it.each<[string, () => unknown, RegExp]>([
    ['another passphrase', () => good, /cannot be opened/],
    [
      'no encryption',
      () => ({
        ...good,
        encoding: { content: ['pkcs8', 'sr25519'], type: ['none'], version: '3' },
      }),
      /encoding\.type is wrong/,
    ],
    [
      'an older version',
      () => ({ ...good, encoding: { ...(good['encoding'] as object), version: '2' } }),
      /encoding\.version/,
    ],
    [
      'a key of another kind',
      () => ({
        ...good,
        encoding: { ...(good['encoding'] as object), content: ['pkcs8', 'ed25519'] },
      }),
      /encoding\.content/,
    ],
    [
      'an address that is not its key’s',
      () => ({ ...good, address: createSigner(new Uint8Array(32).fill(8)).hotkey }),
      /states another address/,
    ],
  ])('is refused with %s', async (name, content, message) => {
    const path = put(`${name}.json`, JSON.stringify(content()));
    const passphrase = name === 'another passphrase' ? 'wrong horse battery' : PASSPHRASE;
    await expect(readKeyFile(path, passphrase)).rejects.toThrow(message);
  });

  it('is refused when others may read it, or it is anything else', async () => {
    const open = put('open.json', JSON.stringify(good));
    chmodSync(open, 0o640);
    await expect(readKeyFile(open, PASSPHRASE)).rejects.toThrow(/chmod 600/);
    await expect(readKeyFile(put('seed', 'ab'.repeat(32)), PASSPHRASE)).rejects.toThrow(/not JSON/);
    await expect(readKeyFile(put('long', 'x'.repeat(70_000)), PASSPHRASE)).rejects.toThrow(
      /longer/,
    );
  });
});

describe('a validator', () => {
  it('signs with its seed where it has no key file', async () => {
    const seeded = { ...environment, VALIDATOR_SEED_FILE: at('hotkey.seed') };
    expect((await openKey(ownKeyPlace(readValidatorConfig(seeded)), null)).hotkey).toBe(OWN.hotkey);
    await expect(encryptSeed([at('hotkey.seed')])).rejects.toThrow(/PASSPHRASE_FILE/);
  });

  it.each<[string, Record<string, string>, RegExp]>([
    [
      'half of a key file',
      { VALIDATOR_KEY_FILE: at('good.json') },
      /VALIDATOR_KEY_PASSPHRASE_FILE: set them too/,
    ],
    ['two keys', { ...keyFile, VALIDATOR_SEED_FILE: at('hotkey.seed') }, /two keys/],
  ])('does not start with %s', (_, extra, message) => {
    expect(() => readValidatorConfig({ ...environment, ...extra })).toThrow(message);
  });

  it('signs a key set that those who trust it take', async () => {
    const next = createSigner(new Uint8Array(32).fill(9)).hotkey;
    const key = {
      key_id: 'next',
      ss58: next,
      roles: ['validator-control'],
      not_before: 5,
      not_after: 9,
    };
    const set = { v: 1, kind: 'key-set', sequence: 1, keys: [key], revoked: [] };
    const seeded = { ...environment, VALIDATOR_SEED_FILE: at('hotkey.seed') };
    const config = readValidatorConfig(seeded);
    const signed = await signKeySetFile([put('keys.json', JSON.stringify(set))], config);
    const roots = [{ hotkey: OWN.hotkey, roles: ['validator-control'] as const }];
    const expected = trustedBy(roots, SignedKeySet.parse(JSON.parse(signed)));
    expect(expected[0]).toMatchObject({ hotkey: next, notBeforeMs: 5, notAfterMs: 9 });
    const wrong = put('wrong.json', JSON.stringify({ ...set, sequence: 0 }));
    await expect(signKeySetFile([wrong], config)).rejects.toThrow(/sequence/);
  });

  it('signs for an account of the central API, and for nothing else', async () => {
    const config = readValidatorConfig({
      ...environment,
      VALIDATOR_SEED_FILE: at('hotkey.seed'),
    });
    const id = '11111111-1111-4111-8111-111111111111';
    const said = JSON.parse(await proveAccountOf([id], config, { now: () => 5_999 }));
    const proof = AccountProof.parse(said.validator_proof);
    expect([proof.timestamp, isProofOf(id, proof)]).toEqual([5, true]);
    expect(isProofOf(id.replace('1', '2'), proof)).toBe(false);
    expect(isProofOf(id, { ...proof, timestamp: 6 })).toBe(false);
    for (const words of [[], ['me'], [id, id]]) {
      await expect(proveAccountOf(words, config, { now: () => 0 })).rejects.toThrow(/one account/);
    }
  });
});
