import { expect, it } from 'vitest';
import type { PodSpecInput } from '#shared/api/agent/pod.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createTestAgent, podSpec } from '../../test/fakes/agents/test-agent.ts';
import { createFakeEngine } from '../../test/fakes/engine/fake-engine.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import type { AgentPorts } from '../app.ts';
import { createDiskStop, type DiskSpace } from './disk-limit.ts';

const LIMIT = 100 * 2 ** 20;
const MINUTE_MS = 60_000;
const IMAGE = 'registry.example/one:1';

const DISK: DiskSpace = {
  totalBytes: 100 * LIMIT,
  freeBytes: 50 * LIMIT,
  totalFiles: 2_000_000,
  freeFiles: 1_000_000,
};

/** `inVolumes` returns the size of the pod's volume, `ports` are further ports of the agent. */
async function setUp(
  diskBytes: number | null = LIMIT,
  inVolumes?: () => Promise<number | null>,
  ports: Partial<AgentPorts> = {},
) {
  const clock = createManualClock();
  const engine = createFakeEngine(clock);
  engine.addImage(IMAGE, `sha256:${'a1'.repeat(32)}`);
  const folderBytes = async () => inVolumes?.() ?? 0;
  const agent = createTestAgent({
    engine,
    clock,
    folderBytes,
    diskSpace: async () => DISK,
    ...ports,
  });
  const id = systemRandom.uuid();
  const volumes = inVolumes === undefined ? [] : ['/data'];
  const spec = podSpec({ image: { reference: IMAGE }, volumes });
  const limits: PodSpecInput['limits'] =
    diskBytes === null ? spec.limits : { ...spec.limits, disk_bytes: diskBytes };
  await agent.server.inject({ method: 'PUT', url: `/v1/pods/${id}`, payload: { ...spec, limits } });
  await eventually('the pod', () => agent.pods.get(id).phase === 'running');
  const view = () => agent.pods.get(id);
  const containerId = view().container_id ?? '';
  return {
    agent,
    engine,
    clock,
    view,
    container: () => engine.containers.get(containerId),
    async measure(share: number) {
      engine.diskBytes.set(containerId, LIMIT * share);
      await agent.core.diskWatch.runOnce();
      return view().conditions.find(({ type }) => type === 'DiskWithinQuota');
    },
  };
}

it('reports disk use and warns from 85 %', async () => {
  const { view, measure } = await setUp();
  expect(view().conditions.map(({ type }) => type)).not.toContain('DiskWithinQuota');
  expect(await measure(0.5)).toMatchObject({ status: true, reason: 'Ok' });
  const near = await measure(0.9);
  expect(near).toMatchObject({ status: false, reason: 'DiskNearlyFull' });
  expect(near?.message).toContain('(90 %)');
  expect(await measure(0.2)).toMatchObject({ status: true });
});

it('stops a pod that stays above its limit and does not restart it', async () => {
  const { agent, clock, view, measure, container } = await setUp();
  await measure(1.1);
  expect(view().phase).toBe('running');
  await clock.advance(MINUTE_MS);
  await measure(1.1);
  expect(view()).toMatchObject({ phase: 'failed', reason: 'DiskQuotaExceeded' });
  expect(container()?.status).toBe('exited');
  await agent.core.reconcile.runOnce();
  await clock.advance(10 * MINUTE_MS);
  expect(container()?.status).toBe('exited');
});

it('does not stop a pod that deletes files in time, but stops one far above its limit', async () => {
  const { clock, view, measure } = await setUp();
  await measure(1.1);
  await clock.advance(MINUTE_MS);
  await measure(0.5);
  await measure(1.1);
  expect(view().phase).toBe('running');
  await measure(1.3);
  expect(view()).toMatchObject({ phase: 'failed', reason: 'DiskQuotaExceeded' });
});

it('completes an interrupted stop', async () => {
  const { agent, engine, measure, container } = await setUp();
  engine.hook = async (moment, method) => {
    if (moment === 'before' && method === 'stopContainer') throw new Error('killed');
  };
  await expect(measure(2)).rejects.toThrow('killed');
  expect(container()?.status).toBe('running');
  engine.hook = async () => undefined;
  await agent.core.diskWatch.runOnce();
  expect(container()?.status).toBe('exited');
});

it('does not measure pods without a limit', async () => {
  const { measure } = await setUp(null);
  expect(await measure(5)).toBeUndefined();
});

it('counts volumes, and reports when they cannot be measured', async () => {
  let found: number | null = null;
  const { clock, view, measure } = await setUp(LIMIT, async () => found);
  const blind = await measure(0.5);
  expect(blind).toMatchObject({ status: true });
  expect(blind?.message).toMatch(/\(50 %\), not counting its volumes/);
  found = LIMIT * 0.4;
  const near = await measure(0.5);
  expect(near).toMatchObject({ status: false, reason: 'DiskNearlyFull' });
  expect(near?.message).toMatch(/\(90 %\)$/);
  // If a walk fails, the last measured size is kept.
  found = null;
  expect((await measure(0.5))?.message).toMatch(/\(90 %\)$/);
  found = LIMIT * 0.6;
  await measure(0.5);
  await clock.advance(MINUTE_MS);
  await measure(0.5);
  expect(view()).toMatchObject({ phase: 'failed', reason: 'DiskQuotaExceeded' });
});

it('walks the volumes of a pod for at most a tenth of the time', async () => {
  let walks = 0;
  const slow = async () => {
    walks += 1;
    await clock.advance(MINUTE_MS);
    return LIMIT * 0.1 * walks;
  };
  const { clock, measure } = await setUp(LIMIT, slow);
  expect((await measure(0.1))?.message).toContain('(20 %)');
  await clock.advance(8 * MINUTE_MS);
  // Files outside the volumes are still measured.
  expect((await measure(0.2))?.message).toContain('(30 %)');
  expect(walks).toBe(1);
  await clock.advance(MINUTE_MS);
  expect((await measure(0.2))?.message).toContain('(40 %)');
  expect(walks).toBe(2);
});

it('measures a pod early while the disk fills, and stops it at once when the disk is nearly full', async () => {
  let space = DISK;
  const { agent, engine, clock, view } = await setUp(LIMIT, undefined, {
    diskSpace: async () => space,
  });
  const { diskWatch } = agent.core;
  await diskWatch.poll();
  engine.diskBytes.set(view().container_id ?? '', LIMIT * 1.1);
  const pollAt = async (freeShare: number) => {
    space = { ...DISK, freeBytes: DISK.totalBytes * freeShare };
    await clock.advance(5_000);
    await diskWatch.poll();
    return diskWatch.bytesOf(view().id);
  };
  expect(await pollAt(0.3)).toBe(0);
  expect(await pollAt(0.2)).toBe(LIMIT * 1.1);
  expect(view().phase).toBe('running');
  expect(await pollAt(0.04)).toBe(LIMIT * 1.1);
  expect(view()).toMatchObject({ phase: 'failed', reason: 'DiskQuotaExceeded' });
});

it('stops a pod with too many files only while the disk has few left', async () => {
  let space = DISK;
  const { clock, view, measure } = await setUp(LIMIT, undefined, {
    diskSpace: async () => space,
    folderEntries: async () => 30_000,
  });
  await measure(0.1);
  expect(view().phase).toBe('running');
  space = { ...DISK, freeFiles: 50_000 };
  await clock.advance(MINUTE_MS);
  await measure(0.1);
  expect(view()).toMatchObject({ phase: 'failed', reason: 'DiskQuotaExceeded' });
  expect(view().message).toContain('The pod has 30000 files, and its share is 20000');
});

it('stops a pod also if the store cannot be written, because the pod has filled its disk', async () => {
  const { agent, view } = await setUp();
  const row = agent.core.records.get(view().id);
  if (row === null) throw new Error('no row');
  const stopped: string[] = [];
  const diskStop = createDiskStop({
    engine: { stopContainer: async (id) => void stopped.push(id) },
    records: {
      change() {
        throw Object.assign(new Error('database or disk is full'), { errcode: 13 });
      },
    },
  });
  await diskStop.begin(row, 'full');
  expect(stopped).toEqual([row.container_id]);
});
