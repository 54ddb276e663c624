import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ConfigError } from '#shared/runtime/config.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { AccountProof, verifyAccountProof } from '#shared/signing/account-proof.ts';
import { type Hotkey, publicKeyOf } from '#shared/signing/hotkey.ts';
import { KeySet, SignedKeySet, signKeySet, trustedKeys } from '#shared/signing/key-set.ts';
import { createSigner, type LocalSigner, verifySr25519 } from '#shared/signing/sr25519.ts';
import { keyConfigIn, readValidatorConfig } from '../config.ts';
import { encryptSeed, proveAccountOf, showHotkey, signKeySetFile } from './key-commands.ts';
import {
  type KeyLocation,
  keyringSigner,
  openKey,
  readKeyFile,
  readOrCreateSeedFile,
  readSeedFile,
  writeKeyFile,
} from './key-file.ts';
import { evidenceKeys, keyProblem, ownKeyLocation } from './own-key.ts';
import { isTrustedAt, trustedHotkeys } from './trusted-hotkeys.ts';

const PASSPHRASE = 'correct horse battery';
const SEED = new Uint8Array(32).fill(7);
const OWN = createSigner(SEED);
/** Key file of the well-known development account, written by the chain's library. */
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

/** Decrypting takes most of a second, which makes guessing expensive. */
let good: Record<string, unknown>;
beforeAll(async () => {
  put('hotkey.seed', Buffer.from(SEED).toString('hex'));
  put('passphrase', `${PASSPHRASE}\n`);
  const said = await encryptSeed(
    [at('hotkey.seed'), at('good.json'), at('passphrase')],
    systemRandom,
  );
  expect(said).toContain(OWN.hotkey);
  good = JSON.parse(readFileSync(at('good.json'), 'utf8'));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('an encrypted key file', () => {
  it('restores the signer, and is readable only by its owner', async () => {
    const config = readValidatorConfig({ ...environment, ...keyFile });
    const signer = await openKey(ownKeyLocation(config), null);
    expect(signer.hotkey).toBe(OWN.hotkey);
    const message = new TextEncoder().encode('message');
    const publicKey = publicKeyOf(signer.hotkey) ?? new Uint8Array(32);
    expect(verifySr25519(message, signer.sign(message), publicKey)).toBe(true);
    expect(statSync(at('good.json')).mode & 0o777).toBe(0o600);
    expect(readFileSync(at('good.json'), 'utf8')).not.toContain(Buffer.from(SEED).toString('hex'));
  });

  it('reads files that the chain’s tools wrote', async () => {
    const path = put('alice.json', JSON.stringify(ALICE));
    expect((await readKeyFile(path, PASSPHRASE)).hotkey).toBe(ALICE.address);
  });

  it('is never overwritten, nor written with a short passphrase', async () => {
    await expect(writeKeyFile(at('good.json'), SEED, PASSPHRASE, systemRandom)).rejects.toThrow(
      /exists already/,
    );
    await expect(writeKeyFile(at('short.json'), SEED, '1234567', systemRandom)).rejects.toThrow(
      /fewer than 8/,
    );
  });

  it.each<[string, () => unknown, RegExp]>([
    ['another passphrase', () => good, /cannot be opened/],
    [
      'no encryption',
      () => ({
        ...good,
        encoding: { content: ['pkcs8', 'sr25519'], type: ['none'], version: '3' },
      }),
      /encoding\.type is invalid/,
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
      'an address of another key',
      () => ({ ...good, address: createSigner(new Uint8Array(32).fill(8)).hotkey }),
      /has an address that does not belong/,
    ],
  ])('is refused with %s', async (name, content, message) => {
    const path = put(`${name}.json`, JSON.stringify(content()));
    const passphrase = name === 'another passphrase' ? 'wrong horse battery' : PASSPHRASE;
    await expect(readKeyFile(path, passphrase)).rejects.toThrow(message);
  });

  it('is rejected if other users may read the file or if it is not a key file', async () => {
    const open = put('open.json', JSON.stringify(good));
    chmodSync(open, 0o640);
    await expect(readKeyFile(open, PASSPHRASE)).rejects.toThrow(/chmod 600/);
    await expect(readKeyFile(put('seed', 'ab'.repeat(32)), PASSPHRASE)).rejects.toThrow(/not JSON/);
    await expect(readKeyFile(put('long', 'x'.repeat(70_000)), PASSPHRASE)).rejects.toThrow(
      /longer/,
    );
  });
});

describe('the configuration check', () => {
  const seed = (path: string) => ({ kind: 'seed', path }) as const;
  const problemOf = async (...[location, keySet]: [KeyLocation, string?]) =>
    keyProblem(location, keySet);

  it('reports the same faults as a start', async () => {
    const open = put('other.seed', 'ab'.repeat(32));
    chmodSync(open, 0o644);
    expect(await problemOf(seed(open))).toMatch(/other.seed may be read by others .*chmod 600/);
    expect(await problemOf(seed(put('none', 'no seed')))).toMatch(/64 hex digits/);
    const key = { kind: 'key-file', path: at('absent.json') } as const;
    const passphraseFile = at('passphrase');
    const noFile = `there is no file ${at('absent.json')}`;
    expect(await problemOf({ ...key, passphraseFile })).toBe(noFile);
    // A seed that the start creates and systemd credentials need not exist yet.
    expect(await problemOf(seed(at('later.seed')))).toBeNull();
    expect(await problemOf(seed(at('hotkey.seed')))).toBeNull();
    const given = { ...key, path: '/run/credentials/podwright-validator.service/key' };
    expect(await problemOf({ ...given, passphraseFile })).toBeNull();
  });

  it('rejects a key set without the validator’s key', async () => {
    const next = createSigner(new Uint8Array(32).fill(8));
    const window = { roles: ['validator-control'], not_before: 0, not_after: 9 };
    const setOf = (...hotkeys: string[]) =>
      KeySet.parse({
        v: 1,
        kind: 'key-set',
        sequence: 1,
        revoked: [],
        keys: hotkeys.map((ss58, at) => ({ key_id: `k${at}`, ss58, ...window })),
      });
    const file = (name: string, set: KeySet, signer: LocalSigner) =>
      put(name, JSON.stringify(signKeySet(set, signer)));
    const own = seed(at('hotkey.seed'));
    const theirs = file('theirs.json', setOf(next.hotkey), next);
    expect(await problemOf(own, theirs)).toMatch(/^VALIDATOR_KEY_SET .*neither names our key/);
    // Before and after the validator's key changes.
    for (const signer of [OWN, next]) {
      const set = file('ours.json', setOf(OWN.hotkey, next.hotkey), signer);
      expect(await problemOf(own, set)).toBeNull();
      const keys = trustedHotkeys(OWN.hotkey, set);
      const counts = (hotkey: Hotkey, atMs: number) => isTrustedAt(keys, hotkey, atMs);
      expect([counts(next.hotkey, 9), counts(next.hotkey, 10)]).toEqual([true, false]);
      expect(counts(createSigner(new Uint8Array(32).fill(9)).hotkey, 5)).toBe(false);
    }
  });

  it('trusts only the named keys, and reports a missing key of the validator', async () => {
    const nobody = () => {
      throw new Error('not problemOf');
    };
    expect(await evidenceKeys([OWN.hotkey], nobody)).toEqual([{ hotkey: OWN.hotkey }]);
    await expect(evidenceKeys(['5x'], nobody)).rejects.toThrow(/^--hotkey 5x: not the ss58/);
    const absent = { VALIDATOR_HOME: at('nowhere') };
    const finding = evidenceKeys([], () => keyConfigIn(absent));
    await expect(finding).rejects.toThrow(
      /there is no file .*nowhere.*; name its ss58 with --hotkey/,
    );
    const present = { VALIDATOR_HOME: folder };
    expect(await evidenceKeys([], () => keyConfigIn(present))).toEqual([{ hotkey: OWN.hotkey }]);
  });
});

describe('a validator', () => {
  it('signs with its seed without a key file', async () => {
    const seeded = { ...environment, VALIDATOR_SEED_FILE: at('hotkey.seed') };
    expect((await openKey(ownKeyLocation(readValidatorConfig(seeded)), null)).hotkey).toBe(
      OWN.hotkey,
    );
    await expect(encryptSeed([at('hotkey.seed')], systemRandom)).rejects.toThrow(/PASSPHRASE_FILE/);
    const absent = [at('none.seed'), at('new.json'), at('passphrase')];
    await expect(encryptSeed(absent, systemRandom)).rejects.toThrow(
      new ConfigError(`there is no file ${at('none.seed')}`),
    );
  });

  it.each<[string, Record<string, string>, RegExp]>([
    [
      'a key file without its passphrase file',
      { VALIDATOR_KEY_FILE: at('good.json') },
      /VALIDATOR_KEY_PASSPHRASE_FILE: not set; set all of/,
    ],
    ['two keys', { ...keyFile, VALIDATOR_SEED_FILE: at('hotkey.seed') }, /both name a key/],
  ])('does not start with %s', (_, extra, message) => {
    expect(() => readValidatorConfig({ ...environment, ...extra })).toThrow(message);
  });

  it('signs a key set that agents accept', async () => {
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
    const expected = trustedKeys(roots, SignedKeySet.parse(JSON.parse(signed)));
    expect(expected[0]).toMatchObject({ hotkey: next, notBeforeMs: 5, notAfterMs: 9 });
    const wrong = put('wrong.json', JSON.stringify({ ...set, sequence: 0 }));
    await expect(signKeySetFile([wrong], config)).rejects.toThrow(/sequence/);
  });

  it('shows its hotkey without further configuration, and creates a missing key', async () => {
    const location = ownKeyLocation(keyConfigIn({ VALIDATOR_HOME: at('fresh') }));
    const hotkey = await showHotkey([], location, systemRandom);
    expect(publicKeyOf(hotkey.trim())).not.toBeNull();
    expect(await showHotkey([], location, systemRandom)).toBe(hotkey);
    await expect(showHotkey(['x'], location, systemRandom)).rejects.toThrow(ConfigError);
    // An incomplete key file configuration must not create another key.
    expect(() => keyConfigIn({ VALIDATOR_KEY_FILE: at('hotkey.json') })).toThrow(ConfigError);
  });

  it('signs a proof that is valid for one account of the central API only', async () => {
    const config = readValidatorConfig({
      ...environment,
      VALIDATOR_SEED_FILE: at('hotkey.seed'),
    });
    const id = '11111111-1111-4111-8111-111111111111';
    const said = JSON.parse(await proveAccountOf([id], config, { now: () => 5_999 }));
    const proof = AccountProof.parse(said.validator_proof);
    expect([proof.timestamp, verifyAccountProof(id, proof)]).toEqual([5, true]);
    expect(verifyAccountProof(id.replace('1', '2'), proof)).toBe(false);
    expect(verifyAccountProof(id, { ...proof, timestamp: 6 })).toBe(false);
    for (const words of [[], ['me'], [id, id]]) {
      await expect(proveAccountOf(words, config, { now: () => 0 })).rejects.toThrow(/one account/);
    }
  });
});

it('creates a private seed once and then reads it', () => {
  const path = join(folder, 'deep', 'hotkey.seed');
  const seed = readOrCreateSeedFile(path, systemRandom);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readOrCreateSeedFile(path, systemRandom)).toEqual(seed);
});

it('rejects a file that other users may read or that contains no seed', () => {
  const open = join(folder, 'open.seed');
  writeFileSync(open, '00'.repeat(32));
  chmodSync(open, 0o644);
  expect(() => readSeedFile(open)).toThrow(/chmod 600/);
  const bad = join(folder, 'bad.seed');
  writeFileSync(bad, 'not a seed', { mode: 0o600 });
  expect(() => readSeedFile(bad)).toThrow(/64 hex digits/);
});

it('signs with the chain’s library, and our verifier accepts the signature', async () => {
  const seed = systemRandom.bytes(32);
  const signer = await keyringSigner(seed);
  expect(signer.hotkey).toBe(createSigner(seed).hotkey);
  const message = new TextEncoder().encode('message');
  const publicKey = publicKeyOf(signer.hotkey) ?? new Uint8Array(32);
  expect(verifySr25519(message, signer.sign(message), publicKey)).toBe(true);
});
