import { expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createFakeEngine } from '../../../test/fakes/engine/fake-engine.ts';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { TRUSTED_CLOCK } from '../../../test/fakes/trusted-clock.ts';
import { openDatabase } from '../../database/database.ts';
import { builtReference } from './build-context.ts';
import type { ImageRow } from './image.store.ts';
import { isAbandoned, MIN_UNUSED_MS, removableImages } from './image-gc.job.ts';
import { createImages } from './images.ts';

const NEVER = new AbortController().signal;
const ignore = () => undefined;
const HOUR_MS = 3_600_000;

function createHost() {
  const clock = createManualClock();
  const engine = createFakeEngine(clock);
  const used: string[] = [];
  const freed: number[] = [];
  /** Disk use in percent at each check; the last value repeats. */
  const percents = [10];
  const options = {
    executorId: systemRandom.uuid(),
    engine,
    clock,
    random: systemRandom,
    database: openDatabase(':memory:'),
    trust: TRUSTED_CLOCK,
    log: createLog({ name: 'test', level: 'silent' }),
    secret: new Uint8Array(32),
    busyboxPath: '/bin/busybox',
    buildsFolder: '/nonexistent',
    networkOf: async () => 'net',
    diskPercent: async () => (percents.length > 1 ? percents.shift() : percents[0]) ?? 0,
    marks: { start: 85, stop: 80 },
    usedByPods: () => used,
    buildKeysOfPods: () => [],
    onRemoved: (bytes: number) => void freed.push(bytes),
  };
  const core = createImages(options);

  async function pull(name: string): Promise<string> {
    const reference = `registry.example/${name}:1`;
    engine.addImage(reference, `sha256:${name.repeat(64).slice(0, 64)}`);
    return (await core.images.ensure({ reference }, ignore, NEVER)).imageId;
  }
  const names = () => core.store.list().map(({ reference }) => /\/(.)@/.exec(reference)?.[1]);
  return {
    clock,
    engine,
    core,
    executorId: options.executorId,
    restart: () => createImages(options),
    used,
    freed,
    percents,
    pull,
    names,
  };
}

it('removes the least recently used images until the disk has space, and no further images', async () => {
  const { clock, core, used, freed, percents, pull, names } = createHost();
  for (const name of ['a', 'b', 'c', 'd']) {
    const imageId = await pull(name);
    if (name === 'a') used.push(imageId);
    await clock.advance(HOUR_MS);
  }
  await core.gc.runOnce();
  expect(names().toSorted()).toEqual(['a', 'b', 'c', 'd']);
  // The disk is above the start mark, still above the stop mark after one removal, and below it after two.
  percents.splice(0, 1, 86, 83, 79);
  await core.gc.runOnce();
  expect(names().toSorted()).toEqual(['a', 'd']);
  expect(freed).toEqual([1, 1]);
});

it('keeps foreign images, the built-in image, and images that containers use', async () => {
  const { clock, engine, core, percents, pull, names } = createHost();
  const reference = 'registry.example/e:1';
  const digest = `sha256:${'e'.repeat(64)}`;
  engine.addImage(reference, digest);
  const provider = `registry.example/e@${digest}`;
  await engine.pullImage(provider, { onProgress: ignore }, NEVER);
  await core.images.ensure({ reference }, ignore, NEVER);
  await core.images.ensure({ reference: 'podwright.local/base:1' }, ignore, NEVER);
  const image = await pull('a');
  await pull('b');
  const empty = { entrypoint: [], command: [], environment: {}, ports: [], gpuUuids: [] };
  const limits = { cpuCores: 1, memoryBytes: 1, shmBytes: 0, pids: 1 };
  const others = { name: 'of-somebody', labels: {}, network: null, stopGraceSeconds: 1 };
  await engine.createContainer({ ...empty, ...others, limits, image });
  await clock.advance(HOUR_MS);
  percents.splice(0, 1, 99);
  await core.gc.runOnce();
  expect(await engine.inspectImage(provider)).not.toBeNull();
  expect(await engine.inspectImage('podwright.local/base:1')).not.toBeNull();
  // The engine refused the removal, so the row stays.
  expect(names()).toEqual(['a']);
});

it('completes the row of a pull that a killed agent had started', async () => {
  const { clock, engine, core, restart } = createHost();
  const digest = `sha256:${'a'.repeat(64)}`;
  engine.addImage('registry.example/a:1', digest);
  const [came, neverCame] = [`registry.example/a@${digest}`, `registry.example/b@${digest}`];
  core.store.begin(came, clock.now());
  core.store.begin(neverCame, clock.now());
  await engine.pullImage(came, { onProgress: ignore }, NEVER);
  await core.gc.runOnce();
  expect(core.store.get(came)?.image_id).toBeNull();
  await clock.advance(1_000);
  await restart().gc.runOnce();
  expect(core.store.get(came)?.image_id).toMatch(/^sha256:/);
  expect(core.store.get(neverCame)).toBeNull();
});

it.each([
  ['before the collection', 'before buildImage'],
  ['after the collection inspected the image', 'after inspectImage'],
])('does not change the row of an interrupted build that is repeated %s', async (_, moment) => {
  const { clock, engine, core, executorId, restart } = createHost();
  const dockerfile = 'FROM podwright.local/base:1\nRUN true';
  const reference = builtReference(executorId, core.builds.keyOf(dockerfile, undefined));
  core.store.begin(reference, clock.now());
  await clock.advance(1_000);
  const again = restart();
  const limits = { cpu_cores: 1, memory_bytes: 2 ** 26, shm_bytes: 0, pids: 64 };
  const build = () =>
    again.builds.ensure({ podId: 'p', dockerfile, auth: undefined, limits }, ignore, NEVER);
  const [first, second] = moment.startsWith('before')
    ? [build, again.gc.runOnce]
    : [again.gc.runOnce, build];
  engine.hook = async (when, method, detail) => {
    if (`${when} ${method}` !== moment || detail !== reference) return;
    engine.hook = async () => undefined;
    await second();
  };
  await first();
  expect(core.store.get(reference)?.image_id).toMatch(/^sha256:/);
});

it('chooses by last use, and never new images or images in use', () => {
  const row = (reference: string, last_used_ms: number, image_id: string | null = reference) =>
    ({ reference, image_id, size_bytes: 1, last_used_ms }) satisfies ImageRow;
  const rows = [row('new', HOUR_MS - 1), row('b', 2), row('a', 1), row('coming', 0, null)];
  const chosen = (used: string[]) =>
    removableImages(rows, new Set(used), HOUR_MS).map(({ reference }) => reference);
  expect(chosen([])).toEqual(['a', 'b']);
  expect(chosen(['a'])).toEqual(['b']);
  expect(removableImages([row('x', 0)], new Set(), MIN_UNUSED_MS - 1)).toEqual([]);
  expect(isAbandoned(row('x', 5, null), 5, 6)).toBe(false);
  expect(isAbandoned(row('x', 5, null), 6, 7)).toBe(true);
  expect(isAbandoned(row('x', 5), 6, 7)).toBe(false);
});
