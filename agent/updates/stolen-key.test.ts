/** Attacks on the updates of an agent by a thief of the validator's key or a proxy, and the recovery from each. */
import { expect, it } from 'vitest';
import type { LocalSigner } from '#shared/signing/sr25519.ts';
import { requestKeys, type SignedRootKeySet } from '#shared/updates/root-key-set.ts';
import type { UpdateManifest } from '#shared/updates/update-manifest.ts';
import { createUpdatingHost, INTERVAL_MS } from '../../test/fakes/agents/updating-host.ts';
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
import {
  digestOf,
  NOW_MS,
  signedDigest,
  validatorKey,
} from '../../test/fixtures/update-manifest.ts';
import { keySetOf, type Trust } from './key-trust.ts';

const PINNED = [{ hotkey: validatorKey.hotkey, roles: ['validator-control'] as const }];
const DAY_MS = 86_400_000;
const first = signedBy(rootKeySet(), rootA, rootB);
/** The digest that runs: a manifest that requires it is accepted without an update. */
const RUNNING: Partial<UpdateManifest> = { digest: digestOf('a') };

/** Creates an agent that trusts the first key set and has accepted sequence 7. */
async function createScene() {
  let trust: Trust | null = null;
  const scene = createUpdatingHost({
    keys: PINNED,
    root: ROOT,
    trustChanged: (changed) => {
      trust = changed;
    },
  });
  /** Offers the answer at the next check and returns the agent's status. A restart does not matter. */
  async function offer(
    keySets: readonly SignedRootKeySet[],
    manifest: Partial<UpdateManifest>,
    signer: LocalSigner = validatorKey,
  ) {
    const nowMs = scene.clock.now();
    const times = { issuedAt: nowMs, expiresAt: nowMs + 3_600_000 };
    scene.host.answer = { ...signedDigest({ ...times, ...manifest }, signer), keySets };
    const agent = scene.boot();
    await agent.runOnce();
    await scene.clock.advance(2 * INTERVAL_MS);
    const { state, reason, sequence } = agent.status();
    return { state, reason, sequence };
  }
  expect(await offer([first], { ...RUNNING, sequence: 7 })).toEqual(idle(7));
  return { ...scene, offer, callers: () => requestKeys(PINNED, keySetOf(trust)) };
}

const idle = (sequence: number, reason: string | null = null) => ({
  state: 'IDLE',
  reason,
  sequence,
});

it('fast-forward: a thief cannot use up the sequences, and a new key set resets what the thief advanced', async () => {
  const { offer } = await createScene();
  expect(await offer([first], { ...RUNNING, sequence: 1_000_000 })).toEqual(
    idle(7, 'SEQUENCE_JUMP'),
  );
  expect(await offer([first], { ...RUNNING, sequence: 1_007 })).toEqual(idle(1_007));
  expect(await offer([first], { ...RUNNING, sequence: 8 })).toEqual(idle(1_007, 'SEQUENCE_OLD'));
  expect(await offer([first, recovery()], { ...RUNNING, sequence: 8 }, freshKey)).toEqual(idle(8));
  expect(await offer([first], { ...RUNNING, sequence: 1_008 })).toEqual(idle(8, 'KEY_UNKNOWN'));
});

it('freeze: withheld manifests and key sets expire, and the next answer is accepted', async () => {
  const { offer, clock } = await createScene();
  const old = { issuedAt: NOW_MS, expiresAt: NOW_MS + 3_600_000 };
  await clock.advance(3_600_000);
  expect(await offer([first], { ...RUNNING, ...old, sequence: 7 })).toEqual(idle(7, 'EXPIRED'));
  const forever = { expiresAt: clock.now() + 365 * DAY_MS };
  expect(await offer([first], { ...RUNNING, ...forever, sequence: 8 })).toEqual(
    idle(7, 'LIFETIME_TOO_LONG'),
  );
  await clock.advance(30 * DAY_MS);
  expect(await offer([first], { ...RUNNING, sequence: 8 })).toEqual(idle(7, 'KEY_SET_EXPIRED'));
  const key = { ...listedKey(freshKey), not_after: clock.now() + DAY_MS };
  const next = recovery({ issued_at: NOW_MS, expires_at: clock.now() + DAY_MS, keys: [key] });
  expect(await offer([first, next], { ...RUNNING, sequence: 8 }, freshKey)).toEqual(idle(8));
});

it('roll-back: neither an older manifest nor an older key set is accepted again', async () => {
  const { offer } = await createScene();
  expect(await offer([first], { ...RUNNING, sequence: 6 })).toEqual(idle(7, 'SEQUENCE_OLD'));
  const second = recovery({ keys: [listedKey(freshKey), listedKey(validatorKey)], revoked: [] });
  const before = { issuedAt: NOW_MS - 1, expiresAt: NOW_MS + DAY_MS };
  // A manifest from before the reset, by a key that is still trusted.
  expect(await offer([first, second], { ...RUNNING, ...before, sequence: 50 })).toEqual(
    idle(0, 'SEQUENCE_OLD'),
  );
  const third = recovery({ sequence: 3 });
  expect(await offer([first, third], { ...RUNNING, sequence: 8 }, freshKey)).toEqual(idle(8));
  for (const keySets of [[first], [first, second]]) {
    expect(await offer(keySets, { ...RUNNING, sequence: 9 })).toEqual(idle(8, 'KEY_UNKNOWN'));
  }
  expect(await offer([first, third], { ...RUNNING, sequence: 9 }, freshKey)).toEqual(idle(9));
});

it('mix-and-match: parts of different answers are not accepted together', async () => {
  const { offer, host, boot, clock, store } = await createScene();
  const [old, next] = [signedDigest({ sequence: 8 }), signedDigest({ sequence: 9 })];
  host.answer = { ...next, signatures: old.signatures, keySets: [first] };
  await boot().runOnce();
  expect(store.get().reason).toBe('SIGNATURE_BAD');
  await clock.advance(2 * INTERVAL_MS);
  const forged = { ...recovery(), signatures: first.signatures };
  expect(await offer([first, forged], { ...RUNNING, sequence: 8 })).toEqual(
    idle(7, 'KEY_SET_REFUSED'),
  );
  // The new key set counts, although the manifest is from before.
  expect(await offer([first, recovery()], { ...RUNNING, sequence: 8 })).toEqual(
    idle(0, 'KEY_UNKNOWN'),
  );
  expect(await offer([first, recovery()], { ...RUNNING, sequence: 8 }, freshKey)).toEqual(idle(8));
});

it('a stolen key: it cannot sign key sets, and a new set ends its updates and its requests', async () => {
  const { offer, host, boot, store, callers } = await createScene();
  const thief = rootKeySet({
    sequence: 2,
    root: { threshold: 2, keys: [rootC.hotkey, rootD.hotkey] },
  });
  for (const signers of [[validatorKey], [validatorKey, rootC, rootD]]) {
    expect(await offer([first, signedBy(thief, ...signers)], { ...RUNNING, sequence: 8 })).toEqual(
      idle(7, 'KEY_SET_REFUSED'),
    );
  }
  host.maintenance = 'a launch runs';
  expect(await offer([first], { digest: digestOf('e'), sequence: 8 })).toEqual({
    state: 'VERIFIED',
    reason: 'MAINTENANCE_HOLD',
    sequence: 8,
  });
  host.maintenance = null;
  const change = { sequence: 8, rolloutPermille: 0 };
  expect(await offer([first, recovery()], change, freshKey)).toEqual(idle(0, 'NOT_YET'));
  expect([store.get().target, host.staged, host.did]).toEqual([null, null, []]);
  expect(callers().map(({ hotkey }) => hotkey)).toEqual([freshKey.hotkey]);
  // The thief still signs, with the key sets from before the theft was known.
  expect(await offer([first], { digest: digestOf('e'), sequence: 9 })).toEqual(
    idle(0, 'KEY_UNKNOWN'),
  );
  await offer([first, recovery()], { sequence: 8 }, freshKey);
  expect(boot().status()).toMatchObject({ state: 'SWITCHING', target_digest: digestOf('b') });
});

it('moves an agent that trusts only a configured key to the root that this key introduces', async () => {
  const scene = createUpdatingHost({ keys: PINNED });
  const update = async (keySets?: readonly SignedRootKeySet[], signer = validatorKey) => {
    const times = { issuedAt: scene.clock.now(), expiresAt: scene.clock.now() + 3_600_000 };
    const signed = signedDigest({ ...RUNNING, ...times, sequence: 5_000 }, signer);
    scene.host.answer = keySets === undefined ? signed : { ...signed, keySets };
    const agent = scene.boot();
    await agent.runOnce();
    await scene.clock.advance(2 * INTERVAL_MS);
    return [agent.status().reason, scene.store.get().trust?.signed.key_set.sequence];
  };
  expect(await update()).toEqual([null, undefined]);
  expect(await update([first])).toEqual(['KEY_SET_REFUSED', undefined]);
  const manifests = { since: NOW_MS, min_sequence: 4_900 };
  const set = rootKeySet({ manifests });
  expect(await update([signedBy(set, rootA, rootB, validatorKey)])).toEqual([null, 1]);
  const second = recovery({ manifests });
  expect(await update([second], freshKey)).toEqual([null, 2]);
});

it('follows another root that the provider configures, and until then accepts no manifest', async () => {
  const scene = createUpdatingHost({ keys: PINNED, root: ROOT });
  const other = { threshold: 2, keys: [rootC.hotkey, rootD.hotkey] };
  const set = signedBy(rootKeySet({ sequence: 9, root: other }), rootC, rootD);
  scene.store.put({ ...scene.store.get(), trust: { configured: other, signed: set } });
  scene.host.answer = signedDigest(RUNNING);
  const agent = scene.boot();
  await agent.runOnce();
  expect(agent.status()).toMatchObject({ reason: 'KEY_SET_MISSING', sequence: 0 });
  await scene.clock.advance(2 * INTERVAL_MS);
  scene.host.answer = { ...signedDigest(RUNNING), keySets: [first] };
  await agent.runOnce();
  expect(agent.status()).toMatchObject({ reason: null, sequence: 7 });
});
