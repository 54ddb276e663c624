/** Updates in a folder of releases: interruptions of the switcher at any point, and the images that staging accepts. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pack } from 'tar-stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runCommand } from '#shared/runtime/run-command.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import {
  freshKey,
  recovery,
  rootA,
  rootB,
  rootKeySet,
  signedBy,
} from '../../test/fixtures/root-key-set.ts';
import {
  AGENT_IMAGE,
  digestOf,
  NOW_MS,
  signedDigest,
  validatorKey,
} from '../../test/fixtures/update-manifest.ts';
import { createReleaseTree, digestOfRelease, releaseNameOf } from './release-tree.ts';
import { type AgentUnit, createTreeReplacement } from './tree-replacement.ts';
import { createTreeStaging } from './tree-staging.ts';

const TARGET = { sequence: 7, digest: digestOf('b') };
const NEW = releaseNameOf(TARGET);
const POINT = { old_id: 'old', restart_policy: {}, pods: [], back: null };

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'podwright-tree-'));
  for (const name of ['releases/old', 'cache']) mkdirSync(join(root, name), { recursive: true });
  symlinkSync('releases/old', join(root, 'current'));
});
afterEach(() => rmSync(root, { recursive: true }));

/** Creates a systemd unit that runs the release to which `current` points at its start. */
function createUnit() {
  const unit = { runs: 'old' as string | null, starts: 0, stops: 0 };
  const port: AgentUnit = {
    async stop() {
      unit.stops += 1;
      unit.runs = null;
    },
    async start() {
      unit.starts += 1;
      unit.runs ??= readlinkSync(join(root, 'current')).slice('releases/'.length);
    },
    isAlive: async () => unit.runs !== null,
    lastLogLines: async () => '',
  };
  return { unit, port };
}

function createScene() {
  const tree = createReleaseTree(root);
  const { unit, port } = createUnit();
  const cacheFolder = join(root, 'cache');
  const side = createTreeReplacement({ tree, unit: port, host: '127.0.0.1', cacheFolder });
  return { tree, unit, side };
}

function makeRelease(
  tree: ReturnType<typeof createReleaseTree>,
  target = TARGET,
  atMs = NOW_MS,
): void {
  tree.openDraft();
  tree.keepDraft(target, atMs);
}

it('switches to a release and ends its trial, even if every step is repeated', async () => {
  const { tree, unit, side } = createScene();
  makeRelease(tree);
  tree.accept({ ...TARGET, trust: null });
  for (const _ of [1, 2]) {
    expect(await side.refusal(TARGET, POINT)).toBeNull();
    await side.stopOld(TARGET, POINT);
    await side.startNew(TARGET, POINT);
  }
  expect([unit.runs, tree.current(), tree.before()]).toEqual([NEW, NEW, 'old']);
  expect(readFileSync(join(root, 'trial'), 'utf8')).toBe('releases/old\n');
  for (const _ of [1, 2]) await side.cleanUp(TARGET, POINT);
  expect([existsSync(join(root, 'trial')), readlinkSync(join(root, 'previous'))]).toEqual([
    false,
    'releases/old',
  ]);
});

it('rolls back after an interruption at any point, and does not stop the old version if nothing was changed', async () => {
  const { tree, unit, side } = createScene();
  makeRelease(tree);
  const goBack = async () => {
    expect(await side.removeNew(TARGET, POINT)).toBe(true);
    await side.startOld(POINT);
  };
  await goBack();
  expect([unit.runs, unit.stops]).toEqual(['old', 0]);
  await side.startNew(TARGET, POINT);
  await side.removeNew(TARGET, POINT);
  // The process was interrupted before the start, and systemd started the current release.
  unit.runs = 'old';
  await goBack();
  expect([unit.runs, tree.current(), tree.isOnTrial()]).toEqual(['old', 'old', false]);
  expect(existsSync(join(root, 'previous'))).toBe(false);
  const stops = unit.stops;
  await goBack();
  expect(unit.stops).toBe(stops);
});

it('does not change a release that was installed during the update', async () => {
  const { tree, unit, side } = createScene();
  makeRelease(tree);
  tree.accept({ ...TARGET, trust: null });
  rmSync(join(root, 'current'));
  symlinkSync('releases/third', join(root, 'current'));
  unit.runs = 'third';
  expect(await side.refusal(TARGET, POINT)).toMatch(/installed during the update/);
  expect(await side.removeNew(TARGET, POINT)).toBe(false);
  expect([unit.runs, unit.stops, tree.current()]).toEqual(['third', 0, 'third']);
});

it('refuses a version that the switcher has not verified', async () => {
  const { tree, side } = createScene();
  makeRelease(tree);
  expect(await side.refusal(TARGET, POINT)).toMatch(/not the version that was verified/);
  tree.accept({ ...TARGET, sequence: 8, trust: null });
  expect(await side.refusal(TARGET, POINT)).toMatch(/not the version that was verified/);
  tree.accept({ ...TARGET, trust: null });
  tree.drop(TARGET);
  expect(await side.refusal(TARGET, POINT)).toMatch(/removed/);
});

it('retains the three newest releases, and the current, previous and trial releases of any age', async () => {
  const { tree, side } = createScene();
  const targets = ['1', '2', '3', '4', '5'].map((digit) => ({
    sequence: 1,
    digest: digestOf(digit),
  }));
  for (const [at, target] of targets.entries()) makeRelease(tree, target, NOW_MS + at * 1_000);
  writeFileSync(join(root, 'cache', 'compiled'), '');
  const [first = TARGET] = targets;
  tree.switchTo(first, 'old');
  await side.cleanUp(first, POINT);
  const left = targets.filter((target) => tree.has(target)).map(({ digest }) => digest.at(-1));
  expect([left, existsSync(tree.pathOf('old'))]).toEqual([['1', '3', '4', '5'], true]);
  expect(existsSync(join(root, 'cache', 'compiled'))).toBe(false);
});

it('reads the digest from a release’s name', () => {
  expect([digestOfRelease(NEW), digestOfRelease('0.1.0-0123456789ab')]).toEqual([
    digestOf('b'),
    null,
  ]);
});

/** Yields a release whose Node exits with `status`. */
async function* releaseThat(status: 0 | 1): AsyncGenerator<Uint8Array> {
  const tar = pack();
  const folders = ['', 'agent/', 'agent/updates/', 'node_modules/', 'node_modules/.bin/'];
  for (const name of folders) tar.entry({ name: `podwright/${name}`, type: 'directory' });
  for (const name of ['package.json', 'agent/main.ts', 'agent/updates/main.ts'])
    tar.entry({ name: `podwright/${name}` }, '{}');
  const node = `#!/bin/sh\necho "wrong: $AGENT_X"; exit ${status}\n`;
  tar.entry({ name: 'podwright/node_modules/.bin/node', mode: 0o755 }, node);
  tar.finalize();
  for await (const chunk of tar) if (chunk instanceof Uint8Array) yield chunk;
}

function createStaging({ isPresent = true, status = 0 as 0 | 1 } = {}) {
  const tree = createReleaseTree(root);
  const image = {
    referenceOf: () => 'image',
    digestsOf: () => [],
    isPresent: async () => isPresent,
    fetch: async () => undefined,
    drop: async () => undefined,
  };
  const stage = createTreeStaging({
    clock: createManualClock(NOW_MS),
    tree,
    image,
    runCommand,
    environment: { AGENT_X: 'x' },
    containers: { copyOut: async (_image, _path, _place, use) => use(releaseThat(status)) },
    facts: {
      image: AGENT_IMAGE,
      executorId: 'executor',
      agentVersion: '0.1.0',
      platform: 'linux/amd64',
      keys: [{ hotkey: validatorKey.hotkey, roles: ['validator-control'] }],
      root: null,
    },
  });
  return { tree, stage };
}

it('removes the oldest unused releases, and what an interrupted removal left', () => {
  const tree = createReleaseTree(root);
  for (const [age, name] of ['c', 'b', 'a'].entries()) {
    mkdirSync(tree.pathOf(name));
    utimesSync(tree.pathOf(name), NOW_MS / 1_000 - age, NOW_MS / 1_000 - age);
  }
  mkdirSync(tree.pathOf('d'));
  mkdirSync(tree.pathOf('.gone-e'));
  for (const name of ['old', 'd']) utimesSync(tree.pathOf(name), 0, 0);
  expect(tree.prune()).toBe(true);
  expect(readdirSync(join(root, 'releases')).sort()).toEqual(['a', 'b', 'c', 'old']);
  expect(tree.prune()).toBe(false);
});

it('stages a signed release completely, even after a kill during an earlier attempt', async () => {
  const { tree, stage } = createStaging();
  writeFileSync(join(tree.openDraft(), 'left'), '');
  await stage(TARGET, signedDigest());
  expect([tree.has(TARGET), existsSync(join(tree.pathOf(NEW), 'left'))]).toEqual([true, false]);
  // The manifest was accepted before: an update may resume after its manifest has expired.
  tree.drop(TARGET);
  await stage(TARGET, null);
  expect(tree.has(TARGET)).toBe(true);
});

it.each([
  ['no manifest', null, /not a signed manifest/],
  [
    'another signer',
    signedDigest({}, createSigner(new Uint8Array(32).fill(1))),
    /signed by no key/,
  ],
  [
    'a bad signature',
    { ...signedDigest(), manifest: signedDigest({ notes: 'x' }).manifest },
    /signature does not match/,
  ],
  ['another digest', signedDigest({ digest: digestOf('e') }), /requires another digest/],
  ['another image', signedDigest({ image: 'evil.example/agent' }), /another image/],
  ['an expired one', signedDigest({ expiresAt: NOW_MS }), /has expired/],
])('stages nothing for %s', async (_, signed, message) => {
  const { tree, stage } = createStaging();
  await expect(stage(TARGET, signed)).rejects.toThrow(message);
  expect([tree.has(TARGET), tree.accepted()]).toEqual([false, null]);
});

it('refuses a version older than the accepted one', async () => {
  const { tree, stage } = createStaging();
  tree.accept({ sequence: 8, digest: digestOf('c'), trust: null });
  await expect(stage(TARGET, signedDigest())).rejects.toThrow(/newer manifest was accepted/);
});

it('stores the accepted key set apart from the agent, and accepts no manifest by a revoked key', async () => {
  const { tree, stage } = createStaging();
  const introduced = signedBy(rootKeySet(), rootA, rootB, validatorKey);
  const signed = { ...signedDigest({}, freshKey), keySets: [introduced, recovery()] };
  await stage(TARGET, signed);
  expect(tree.accepted()?.trust?.signed.key_set).toEqual(recovery().key_set);
  const next = { sequence: 8, digest: digestOf('e') };
  await expect(stage(next, signedDigest(next))).rejects.toThrow(/signed by no key/);
  await stage(next, signedDigest(next, freshKey));
  expect(tree.accepted()).toMatchObject(next);
});

it('reads the file of a version without key sets', () => {
  writeFileSync(join(root, 'update.json'), JSON.stringify(TARGET));
  expect(createReleaseTree(root).accepted()).toEqual({ ...TARGET, trust: null });
});

it('leaves no files of a release that rejects the variables or whose image is missing', async () => {
  const refusing = createStaging({ status: 1 });
  await expect(refusing.stage(TARGET, signedDigest())).rejects.toThrow(/wrong: x/);
  await expect(createStaging({ isPresent: false }).stage(TARGET, signedDigest())).rejects.toThrow(
    /does not have the image/,
  );
  expect([refusing.tree.has(TARGET), existsSync(join(root, 'releases/.update'))]).toEqual([
    false,
    false,
  ]);
});

it('names a damaged file of the last accepted update, and stages nothing', async () => {
  const { tree, stage } = createStaging();
  await stage(TARGET, signedDigest());
  const file = join(root, 'update.json');
  truncateSync(file, Math.floor(statSync(file).size / 2));
  await expect(stage(TARGET, signedDigest())).rejects.toThrow(`${file} is damaged: delete it if`);
  expect(tree.has(TARGET)).toBe(true);
});
