import { describe, expect, it } from 'vitest';
import type { LocalSigner } from '#shared/signing/sr25519.ts';
import { createSeededRandom } from '../../test/fakes/seeded-random.ts';
import {
  freshKey,
  listedKey,
  ROOT,
  recovery,
  rootA,
  rootB,
  rootC,
  rootD,
  rootKeySet,
  signedBy,
} from '../../test/fixtures/root-key-set.ts';
import { NOW_MS, validatorKey } from '../../test/fixtures/update-manifest.ts';
import {
  type ChainFacts,
  chainOf,
  followKeySets,
  RootKeySet,
  requestKeys,
  SignedRootKeySet,
} from './root-key-set.ts';

const FACTS: ChainFacts = { root: ROOT, pinned: [], accepted: null, nowMs: NOW_MS };
const PINNED = [{ hotkey: validatorKey.hotkey, roles: ['validator-control'] as const }];
const first = signedBy(rootKeySet(), rootA, rootB);

const sequenceAfter = (
  offered: readonly SignedRootKeySet[],
  facts: Partial<ChainFacts> = {},
): number | string => {
  const { accepted, isRefused } = followKeySets(offered, { ...FACTS, ...facts });
  const sequence = accepted?.key_set.sequence ?? 0;
  return isRefused ? `${sequence}, refused` : sequence;
};

describe('a key set', () => {
  it.each([
    ['with a threshold of one', { root: { ...ROOT, threshold: 1 } }],
    ['with a threshold above its keys', { root: { ...ROOT, threshold: 4 } }],
    ['with a root key twice', { root: { threshold: 2, keys: [rootA.hotkey, rootA.hotkey] } }],
    ['that lists a root key as online key', { keys: [listedKey(rootA)] }],
    ['that revokes a listed key', { revoked: [validatorKey.hotkey] }],
    ['that expires before its issue', { expires_at: NOW_MS - 86_400_001 }],
    ['valid for more than 400 days', { expires_at: NOW_MS + 400 * 86_400_000 }],
    ['with a key that outlives it', { expires_at: NOW_MS + 1 }],
    ['without a key', { keys: [] }],
    ['of an unknown member', { more: 1 }],
    ['of a fractional sequence', { sequence: 1.5 }],
  ])('%s is invalid', (_, change) => {
    expect(RootKeySet.safeParse({ ...rootKeySet(), ...change }).success).toBe(false);
  });

  it.each([
    ['two root keys are accepted', [rootA, rootC], 1],
    ['one root key are refused', [rootA], '0, refused'],
    ['one root key twice are refused', [rootA, rootA], '0, refused'],
    ['one root key and a stranger are refused', [rootA, rootD], '0, refused'],
    ['one root key and an online key are refused', [rootA, validatorKey], '0, refused'],
  ])('signatures by %s', (_, signers, result) => {
    expect(sequenceAfter([signedBy(rootKeySet(), ...signers)])).toBe(result);
  });

  it('with two signatures by one key is invalid', () => {
    const parse = (document: SignedRootKeySet) => SignedRootKeySet.safeParse(document).success;
    expect([parse(first), parse(signedBy(rootKeySet(), rootA, rootB, rootA))]).toEqual([
      true,
      false,
    ]);
  });

  it('needs the root keys of the set before and its own', () => {
    const root = { threshold: 2, keys: [rootB.hotkey, rootC.hotkey, rootD.hotkey] };
    const next = rootKeySet({ sequence: 2, root });
    const sequenceWith = (...signers: LocalSigner[]) =>
      sequenceAfter([signedBy(next, ...signers)], { accepted: first });
    expect([
      sequenceWith(rootA, rootB),
      sequenceWith(rootC, rootD),
      sequenceWith(rootB, rootC),
    ]).toEqual(['1, refused', '1, refused', 2]);
    expect(sequenceWith(rootA, rootB, rootD)).toBe(2);
  });

  it('is followed over changes of the root that the agent has missed', () => {
    const [rootOf2, rootOf4] = [
      { threshold: 2, keys: [rootB.hotkey, rootC.hotkey] },
      { threshold: 2, keys: [rootC.hotkey, rootD.hotkey] },
    ];
    const sets = [
      first,
      signedBy(rootKeySet({ sequence: 2, root: rootOf2 }), rootB, rootC),
      signedBy(rootKeySet({ sequence: 3, root: rootOf2 }), rootB, rootC),
      signedBy(rootKeySet({ sequence: 4, root: rootOf4 }), rootB, rootC, rootD),
      signedBy(rootKeySet({ sequence: 5, root: rootOf4 }), rootC, rootD),
      signedBy(rootKeySet({ sequence: 6, root: rootOf4 }), rootC, rootD),
    ];
    const chain = chainOf(sets);
    expect(chain.map(({ key_set }) => key_set.sequence)).toEqual([1, 2, 4, 6]);
    const [newest] = chain.slice(-1);
    expect(sequenceAfter(newest === undefined ? [] : [newest], { accepted: first })).toBe(
      '1, refused',
    );
    for (const accepted of [null, ...sets]) expect(sequenceAfter(chain, { accepted })).toBe(6);
    // A host that was configured with the newest root cannot verify the sets before.
    expect(sequenceAfter(chain, { root: rootOf4 })).toBe(6);
  });

  it('is introduced by a configured key if no root is configured', () => {
    const introduced = signedBy(rootKeySet(), rootA, rootB, validatorKey);
    const facts = { root: null, pinned: PINNED };
    expect([sequenceAfter([introduced], facts), sequenceAfter([first], facts)]).toEqual([
      1,
      '0, refused',
    ]);
    const reader = [{ hotkey: validatorKey.hotkey, roles: ['validator-read'] as const }];
    expect(sequenceAfter([introduced], { root: null, pinned: reader })).toBe('0, refused');
    const alone = signedBy(rootKeySet(), rootA, validatorKey);
    expect(sequenceAfter([alone], facts)).toBe('0, refused');
  });

  it('replaces and revokes configured keys of requests', () => {
    const provider = { hotkey: rootD.hotkey, roles: ['provider-local'] as const };
    const keys = requestKeys([...PINNED, provider], recovery().key_set);
    expect(keys.map(({ hotkey }) => hotkey)).toEqual([freshKey.hotkey, provider.hotkey]);
    expect(requestKeys(PINNED, null)).toBe(PINNED);
  });
});

it('never accepts altered content, in 500 random alterations', () => {
  const random = createSeededRandom(2027);
  const text = JSON.stringify(signedBy(rootKeySet(), rootA, rootB));
  let parsed = 0;
  for (let round = 0; round < 500; round += 1) {
    const at = random.int(text.length);
    const inserted = String.fromCharCode(32 + random.int(95));
    const altered = text.slice(0, at) + inserted + text.slice(at + random.int(3));
    const document = documentIn(altered);
    if (document === null) continue;
    parsed += 1;
    const { accepted } = followKeySets([document], FACTS);
    if (accepted !== null) expect(accepted.key_set).toEqual(rootKeySet());
  }
  expect(parsed).toBeGreaterThan(0);
});

function documentIn(text: string): SignedRootKeySet | null {
  try {
    return SignedRootKeySet.safeParse(JSON.parse(text)).data ?? null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
