import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { publicKeyOf } from '#shared/signing/hotkey.ts';
import { createSigner, type Signer, verifySr25519 } from '#shared/signing/sr25519.ts';
import { createKeyThread, type KeyThread } from './key-thread.ts';

const SEED = new Uint8Array(32).fill(9);
const MESSAGES = 200;

let folder: string;
let keys: KeyThread;
const at = (name: string) => join(folder, name);
const seedFile = (name: string, seed: Uint8Array) => {
  writeFileSync(at(name), Buffer.from(seed).toString('hex'), { mode: 0o600 });
  return { kind: 'seed', path: at(name) } as const;
};

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-keys-'));
  // One thread for all tests: loading the chain's library takes most of a second.
  keys = createKeyThread();
});
afterAll(async () => {
  await keys.close();
  rmSync(folder, { recursive: true });
});

function isSignedBy({ hotkey }: Signer, message: Uint8Array, signature: Uint8Array): boolean {
  return verifySr25519(message, signature, publicKeyOf(hotkey) ?? new Uint8Array(32));
}

it('signs with the requested key without blocking the event loop', async () => {
  const first = await keys.open(seedFile('first', SEED));
  const second = await keys.open(
    seedFile(
      'second',
      SEED.map((byte) => byte + 1),
    ),
  );
  expect(first.hotkey).toBe(createSigner(SEED).hotkey);
  const messages = Array.from({ length: MESSAGES }, (_, index) => Buffer.from(`message ${index}`));
  let turns = 0;
  const signing = Promise.all(messages.map((message) => first.sign(message)));
  const counting = (async () => {
    while (keys.waiting() > 0) {
      await systemClock.sleep(1);
      turns += 1;
    }
  })();
  expect(keys.waiting()).toBe(MESSAGES);
  const signatures = await signing;
  await counting;
  // A blocked event loop would run nothing before the last signature.
  expect(turns).toBeGreaterThan(1);
  for (const [index, message] of messages.entries()) {
    if (index % 50 !== 0) continue;
    const signature = signatures[index] ?? new Uint8Array();
    expect([isSignedBy(first, message, signature), isSignedBy(second, message, signature)]).toEqual(
      [true, false],
    );
  }
});

it('creates a missing seed, and explains why a file is rejected', async () => {
  const made = await keys.open({ kind: 'seed', path: at('new') });
  expect(statSync(at('new')).mode & 0o777).toBe(0o600);
  expect((await keys.open({ kind: 'seed', path: at('new') })).hotkey).toBe(made.hotkey);
  const open = seedFile('open', SEED);
  chmodSync(open.path, 0o644);
  await expect(keys.open(open)).rejects.toThrow('chmod 600');
  await expect(keys.open(open)).rejects.toThrow(ConfigError);
  const passphraseFile = at('new');
  await expect(
    keys.open({ kind: 'key-file', path: seedFile('none', SEED).path, passphraseFile }),
  ).rejects.toThrow('is not a key file');
});

it('rejects pending and later calls when it closes', async () => {
  const signer = await keys.open(seedFile('last', SEED));
  // One signature could be complete before the thread ends.
  const waiting = Array.from({ length: 1_000 }, () => signer.sign(Buffer.from('message')));
  const settled = Promise.allSettled(waiting);
  await keys.close();
  const last = (await settled).at(-1);
  expect(last?.status === 'rejected' && String(last.reason)).toContain('the thread ended');
  await expect(Promise.resolve(signer.sign(Buffer.from('message')))).rejects.toThrow('ended');
});
