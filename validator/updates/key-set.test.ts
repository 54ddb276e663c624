import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigError } from '#shared/runtime/config.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import type { LocalSigner } from '#shared/signing/sr25519.ts';
import { followKeySets, RootKeySet, type SignedRootKeySet } from '#shared/updates/root-key-set.ts';
import {
  freshKey,
  listedKey,
  ROOT,
  recovery,
  rootA,
  rootB,
  rootKeySet,
  signedBy,
} from '../../test/fixtures/root-key-set.ts';
import { NOW_MS, validatorKey } from '../../test/fixtures/update-manifest.ts';
import { writeKeyFile } from '../keys/key-file.ts';
import { openEvidenceStore, withStore } from '../store/evidence-store.ts';
import { nextExpiry, nextSet, publishProblem, recoverySet } from './key-set.rules.ts';
import { publishedChain } from './key-set.store.ts';
import { runKeySetCommand } from './key-set-commands.ts';

const DAY_MS = 86_400_000;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-key-sets-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const at = (name: string) => join(folder, name);
function put(name: string, content: unknown): string {
  writeFileSync(at(name), typeof content === 'string' ? content : JSON.stringify(content));
  return at(name);
}
const location = () => ({ address: at('ledger.db'), variable: '--ledger' });
const noNetwork = () => {
  throw new Error('an offline command must not open this');
};

/** Runs a command of the offline machine. */
const offline = (...words: string[]) =>
  runKeySetCommand(words, {
    nowMs: NOW_MS,
    random: systemRandom,
    store: noNetwork,
    ownKey: noNetwork,
  });
/** Runs a command of the validator with this key. */
const online = (words: string[], own: LocalSigner = validatorKey, nowMs = NOW_MS) =>
  runKeySetCommand(words, {
    nowMs,
    random: systemRandom,
    store: location,
    ownKey: async () => own,
  });

describe('a ceremony', () => {
  it('creates root keys, signs on three machines, publishes, and replaces a stolen key', async () => {
    await (await openEvidenceStore(at('ledger.db'))).destroy();
    const roots = [];
    for (const name of ['a', 'b', 'c']) {
      roots.push((await offline('new-root', at(`${name}.seed`))).trim());
      expect(statSync(at(`${name}.seed`)).mode & 0o777).toBe(0o600);
    }
    put('set.json', await offline('draft', validatorKey.hotkey, '2', ...roots));
    put('a.json', await offline('sign', at('set.json'), at('a.seed')));
    put('b.json', await offline('sign', at('set.json'), at('b.seed')));
    expect(await offline('check', at('a.json'))).toContain('1 of 3 root keys have signed, 2 are');
    await expect(online(['publish', at('a.json')])).rejects.toThrow(
      /signatures are missing: 1 of 3/,
    );
    put('signed.json', await offline('combine', at('a.json'), at('b.json')));
    expect(await online(['publish', at('signed.json')])).toContain('2 of 3 root keys have signed');

    put('current.json', await online(['show']));
    const words = [at('current.json'), validatorKey.hotkey, freshKey.hotkey];
    put('next.json', await offline('recover', ...words));
    put('next-b.json', await offline('sign', at('next.json'), at('b.seed')));
    // The third root key is in an encrypted file.
    put('passphrase', 'correct horse');
    chmodSync(at('passphrase'), 0o600);
    const seed = Buffer.from(readFileSync(at('c.seed'), 'utf8').trim(), 'hex');
    await writeKeyFile(at('c.key'), new Uint8Array(seed), 'correct horse', systemRandom);
    const sealed = [at('c.key'), at('passphrase')];
    put('next-bc.json', await offline('sign', at('next-b.json'), ...sealed));
    await online(['publish', at('next-bc.json')], freshKey);

    const chain = await withStore(location(), 'read', publishedChain);
    const root = { threshold: 2, keys: roots };
    const agent = { root, pinned: [], accepted: null, nowMs: NOW_MS };
    expect(followKeySets(chain, agent).accepted?.key_set).toMatchObject({
      sequence: 2,
      keys: [{ ss58: freshKey.hotkey }],
      revoked: [validatorKey.hotkey],
    });
    // An agent that trusts only the validator's key follows from the first set on.
    const pinned = [{ hotkey: validatorKey.hotkey, roles: ['validator-control'] as const }];
    const old = followKeySets(chain, { ...agent, root: null, pinned });
    expect([old.accepted?.key_set.sequence, old.isRefused]).toEqual([2, false]);
    await expect(online(['publish', at('signed.json')])).rejects.toThrow(
      /sequence is 1, and 2 is already published/,
    );
  });

  it.each<[string, (file: string) => string[], RegExp]>([
    ['an unknown command', () => ['undo'], /key-set new-root, draft/],
    ['no command', () => [], /key-set new-root, draft/],
    ['a member of every object as a command', () => ['toString'], /key-set new-root, draft/],
    ['a root key file that exists', (file) => ['new-root', file], /exists already/],
    ['a root key inside a file', (file) => ['new-root', join(file, 'a.seed')], /set.json/],
    ['a threshold of one', () => ['draft', validatorKey.hotkey, '1', ...ROOT.keys], /threshold/],
    ['a key that is none', () => ['draft', '5x', '2', ...ROOT.keys], /5x is not the ss58/],
    ['a draft without root keys', () => ['draft', validatorKey.hotkey, '2'], /keys/],
    ['a root key as validator', () => ['draft', rootA.hotkey, '2', ...ROOT.keys], /A root key is/],
    ['a missing file', () => ['check', at('none.json')], /there is no file/],
    ['a folder as file', () => ['check', folder], /not a file/],
    ['a text as file', () => ['check', put('text', 'hello')], /JSON/],
    ['another document', (file) => ['check', put('x.json', { v: 1, file })], /not a key set of v/],
    ['one file to combine', (file) => ['combine', file], /combine takes FILE FILE/],
    [
      'different sets',
      (file) => ['combine', file, put('2.json', rootKeySet({ sequence: 2 }))],
      /2.json is another key set than/,
    ],
    ['no seed', (file) => ['sign', file], /sign takes FILE SEED_FILE/],
    [
      'a seed that others may read',
      (file) => ['sign', file, put('open.seed', '00'.repeat(32))],
      /chmod 600/,
    ],
    [
      'a key that is not listed',
      (file) => ['recover', file, freshKey.hotkey, freshKey.hotkey],
      /does not list the key/,
    ],
    ['a word too many', (file) => ['next', file, 'x'], /next takes FILE/],
  ])('rejects %s', async (_, words, message) => {
    const file = put('set.json', rootKeySet());
    const running = offline(...words(file));
    await expect(running).rejects.toThrow(message);
    await expect(running).rejects.toThrow(ConfigError);
  });
});

const published = signedBy(rootKeySet(), rootA, rootB);
const FACTS = { nowMs: NOW_MS, own: validatorKey.hotkey, chain: [published], releaseSequence: 5 };
const second = (change: Partial<RootKeySet>) =>
  signedBy(rootKeySet({ sequence: 2, ...change }), rootA, rootB);

it.each<[string, SignedRootKeySet, object, RegExp | null]>([
  ['that follows the published one is published', second({}), {}, null],
  ['of the published sequence', published, {}, /1 is already published/],
  ['issued in the future', second({ issued_at: NOW_MS + DAY_MS }), {}, /clock of the offline/],
  [
    'that invalidates all manifests',
    second({ manifests: { since: NOW_MS + DAY_MS, min_sequence: 1 } }),
    {},
    /agents would refuse every manifest/,
  ],
  ['that has expired', second({}), { nowMs: NOW_MS + 30 * DAY_MS }, /it has expired/],
  ['without this validator’s key', recovery(), {}, /does not list this validator’s key/],
  [
    'that allows older manifests',
    second({ manifests: { since: 0, min_sequence: 1 } }),
    {},
    /earlier than in the published set/,
  ],
  [
    'that refuses the newest release',
    second({ manifests: { since: NOW_MS, min_sequence: 6 } }),
    {},
    /min_sequence is 6, .* set it to 5/,
  ],
  ['too far below the newest release', second({}), { releaseSequence: 1_001 }, /set it to 1001/],
  [
    'that makes the answer too long',
    second({ revoked: Array.from({ length: 200 }, () => freshKey.hotkey) }),
    { chain: Array.from({ length: 5 }, () => ({ ...published, more: 'x'.repeat(9_000) })) },
    /longer than 49152 bytes/,
  ],
])('checks a set before agents receive it: a set %s', (_, signed, change, problem) => {
  const found = publishProblem(signed, { ...FACTS, ...change });
  if (problem === null) expect(found).toBeNull();
  else expect(found).toMatch(problem);
});

it('extends the keys that are valid until the end of a set, and warns 30 days before an expiry', () => {
  const nowMs = NOW_MS + DAY_MS;
  const short = { ...listedKey(freshKey), not_after: NOW_MS + 2 * DAY_MS };
  const set = rootKeySet({ keys: [listedKey(validatorKey), short] });
  const next = nextSet(set, nowMs);
  expect(RootKeySet.parse(next)).toMatchObject({ sequence: 2, expires_at: nowMs + 365 * DAY_MS });
  expect(next.keys.map(({ not_after }) => not_after)).toEqual([next.expires_at, short.not_after]);
  const expiry = (own: string, ms: number) => {
    const { what, isUrgent, isOver } = nextExpiry(next, own, ms);
    return [what.includes('the key'), isUrgent, isOver];
  };
  expect(expiry(validatorKey.hotkey, nowMs)).toEqual([false, false, false]);
  expect(expiry(validatorKey.hotkey, nowMs + 336 * DAY_MS)).toEqual([false, true, false]);
  expect(expiry(freshKey.hotkey, nowMs)).toEqual([true, true, false]);
  expect(expiry(rootA.hotkey, nowMs)).toEqual([true, true, true]);
  const keys = { stolen: rootA.hotkey, fresh: freshKey.hotkey };
  expect(recoverySet(set, keys, nowMs)).toBeNull();
});
