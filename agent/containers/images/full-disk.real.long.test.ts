import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { type SmallEngine, startSmallEngine } from '../../../test/fakes/engine/small-engine.ts';
import {
  type FakeRegistry,
  startFakeRegistry,
} from '../../../test/fakes/external/fake-registry.ts';
import { TRUSTED_CLOCK } from '../../../test/fakes/trusted-clock.ts';
import { openDatabase } from '../../database/database.ts';
import { createDiskPercent } from '../../host/disk-space.ts';
import { createDockerodeEngine } from '../engine/dockerode-engine.ts';
import { MIN_UNUSED_MS } from './image-gc.job.ts';
import { createImages } from './images.ts';

const NEVER = new AbortController().signal;
const MIB = 2 ** 20;
const ignore = () => undefined;

let small: SmallEngine;
let registry: FakeRegistry;
beforeAll(async () => {
  registry = await startFakeRegistry();
  small = await startSmallEngine(64);
});
afterAll(async () => {
  await small.remove();
  await registry.close();
});

it('reports a full disk, and removes the least recently used image', async () => {
  const engine = createDockerodeEngine({ socketPath: small.socketPath, clock: systemClock });
  // The clock is manual; the disk that fills up is real.
  let later = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + later };
  const freed: number[] = [];
  const used: string[] = [];
  const core = createImages({
    trust: TRUSTED_CLOCK,
    executorId: systemRandom.uuid(),
    engine,
    clock,
    random: systemRandom,
    log: createLog({ name: 'test', level: 'silent' }),
    database: openDatabase(':memory:'),
    secret: systemRandom.bytes(32),
    busyboxPath: '/bin/busybox',
    buildsFolder: '/nonexistent',
    networkOf: async () => 'none',
    diskPercent: createDiskPercent(clock, engine),
    marks: { start: 50, stop: 40 },
    usedByPods: () => used,
    buildKeysOfPods: () => [],
    onRemoved: (bytes) => void freed.push(bytes),
  });
  async function pull(tag: string, mib: number): Promise<string> {
    const layers = [systemRandom.bytes(mib * MIB)];
    registry.publish('podwright-test/big', tag, tag, { layers });
    const reference = `${registry.host}/podwright-test/big:${tag}`;
    later += MIN_UNUSED_MS;
    return (await core.images.ensure({ reference }, ignore, NEVER)).imageId;
  }
  used.push(await pull('used', 12));
  await pull('old', 12);
  await pull('newer', 12);
  const tooMuch = pull('too-much', 60).catch((error: unknown) => error);
  expect(await tooMuch).toMatchObject({ kind: 'image_no_space' });

  later += MIN_UNUSED_MS;
  const diskPercent = createDiskPercent(clock, engine);
  expect(await diskPercent()).toBeGreaterThan(50);
  await core.gc.runOnce();
  expect(await diskPercent()).toBeLessThanOrEqual(40);
  expect(freed.length).toBeGreaterThan(0);
  expect(await engine.inspectImage(used[0] ?? '')).not.toBeNull();
});
