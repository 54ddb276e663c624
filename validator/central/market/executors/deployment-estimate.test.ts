import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MAX_WAIT_MS } from '#shared/api/agent/bounds.ts';
import { type FinishedPull, NO_PROGRESS } from '#shared/api/agent/images.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import {
  type AddedNode,
  createTestMarket,
  DEFAULT_TEMPLATE,
  type TestMarket,
} from '../../../../test/fakes/scenes/market-fixture.ts';
import { launchEstimate, slownessWarning } from './launch-estimate.ts';
import { findImageSize, findPullSpeed } from './pull-speed.store.ts';
import { averagedSpeed, createPullRecorder, deleteOldImageSizes } from './pull-speed.ts';

const UBUNTU = '5d0c8f3a-6d0e-4c59-9a3e-3f6f0b7c1a01';
const IMAGE = 'ubuntu:24.04';
const GB = 1_000_000_000;
const PULL: FinishedPull = {
  finished_ms: 1_000,
  took_ms: 10_000,
  bytes: GB,
  image_bytes: GB,
  is_whole: true,
};

let market: TestMarket;
let account: TestAccount;
let node: AddedNode;
beforeEach(async () => {
  market = await createTestMarket();
  node = await market.verifiedNode({ gpus: 2, minimum: 1 });
  account = await market.renter();
});
afterEach(() => market.close());

async function estimate(template = UBUNTU, on = node) {
  const path = `/executors/deployment-estimate?executor_id=${on.id}&template_id=${template}`;
  return (await market.call('GET', path, { headers: account.key })).body;
}

async function rent(on = node) {
  return (await market.rent(account, on.id, { template_id: UBUNTU, gpu_count: 1 })).body;
}

async function podResponse(id: string) {
  return (await market.call('GET', `/pods/${id}`, { headers: account.key })).body;
}

it('assumes sizes and speeds before the first measurement', async () => {
  expect(await estimate()).toEqual({
    estimated_seconds: 110,
    eta_basis: 'assumed',
    is_cached_template: false,
    is_slow_machine: false,
    warning_message: null,
    docker_image_size: null,
    required_balance_usd: 1.1,
    price_per_hour: 4.4,
  });
  // The image of the default template is built into every agent and needs no pull.
  expect(await estimate(DEFAULT_TEMPLATE)).toMatchObject({
    estimated_seconds: 10,
    eta_basis: 'assumed',
    is_cached_template: true,
  });
  const path = `/executors/deployment-estimate?executor_id=${node.id}&template_id=${UBUNTU}`;
  expect((await market.call('GET', path)).status).toBe(401);
});

it('uses earlier launches of the image on the node', async () => {
  const { id } = await rent();
  await market.clock.advance(7_000);
  await market.sync();
  expect((await podResponse(id)).status).toBe('RUNNING');
  expect(await estimate()).toMatchObject({
    estimated_seconds: 7,
    eta_basis: 'launches',
    is_cached_template: true,
  });
  const other = await market.verifiedNode();
  expect(await estimate(UBUNTU, other)).toMatchObject({ is_cached_template: false });
});

it('uses the measured pull speed and image size', async () => {
  const host = market.agents.host(node.id);
  host.arrives = 'pulling';
  const { id } = await rent();
  await market.sync();
  host.change(id, { phase: 'starting', last_pull: PULL });
  await market.sync();
  await market.sync();
  expect(await findPullSpeed(market.ports.db, node.id)).toMatchObject({
    bytes_per_second: GB / 10,
    pulls: 1,
  });
  expect(await estimate()).toMatchObject({
    estimated_seconds: 20,
    eta_basis: 'pull_speed',
    docker_image_size: GB,
  });
  const slow = await market.verifiedNode();
  const measures = createPullRecorder(market.ports);
  await measures.record(slow.id, null, { ...PULL, took_ms: 200_000 });
  expect(await estimate(UBUNTU, slow)).toMatchObject({
    estimated_seconds: 210,
    eta_basis: 'pull_speed',
    is_slow_machine: true,
    warning_message: 'This node pulls images at about 5.0 MB/s: a large image takes long',
  });
  const { body } = await market.call('GET', `/executors/${slow.id}/hardware-utilization`);
  expect(body.network).toMatchObject({ download_speed: 40, upload_speed: null });
});

it('counts a pull once, averages several pulls, and ignores very small ones', async () => {
  const { db } = market.ports;
  const speedAfter = async (pull: Partial<FinishedPull>) => {
    // A new recorder has no record of counted pulls, like the recorder of another or a restarted process.
    await createPullRecorder(market.ports).record(node.id, IMAGE, { ...PULL, ...pull });
    return (await findPullSpeed(db, node.id))?.bytes_per_second;
  };
  expect(await speedAfter({ bytes: 1_000, image_bytes: 0 })).toBeUndefined();
  expect(await speedAfter({})).toBe(100_000_000);
  expect(await speedAfter({ took_ms: 1_000 })).toBe(100_000_000);
  expect(await speedAfter({ finished_ms: 2_000, took_ms: 5_000 })).toBe(130_000_000);
  expect(await speedAfter({ finished_ms: 1_500, took_ms: 5_000 })).toBe(130_000_000);
  expect(averagedSpeed(100, { ...PULL, bytes: 0 })).toBe(70);
  // The upper bound applies even to figures that an agent could not have measured.
  expect(averagedSpeed(null, { ...PULL, bytes: 2 ** 53, took_ms: 0 })).toBe(1e12);
});

it('prefers the size of a whole image to the size of a part, and deletes image sizes after half a year', async () => {
  const { db } = market.ports;
  let finished_ms = 0;
  const sizeAfter = async (image_bytes: number, is_whole: boolean) => {
    finished_ms += 1;
    const pull = { ...PULL, finished_ms, image_bytes, is_whole };
    await createPullRecorder(market.ports).record(node.id, IMAGE, pull);
    return findImageSize(db, IMAGE);
  };
  expect(await sizeAfter(300, false)).toBe(300);
  expect(await sizeAfter(200, false)).toBe(300);
  expect(await sizeAfter(250, true)).toBe(250);
  expect(await sizeAfter(900, false)).toBe(250);
  expect(await sizeAfter(240, true)).toBe(240);
  await market.clock.advance(181 * 24 * 3_600_000);
  await deleteOldImageSizes(db, market.clock.now());
  expect(await findImageSize(db, IMAGE)).toBeNull();
});

it('records the image sizes of all pods of a node, also of a pod whose pull ended earlier', async () => {
  const { db } = market.ports;
  const measures = createPullRecorder(market.ports);
  await measures.record(node.id, IMAGE, { ...PULL, finished_ms: 2_000 });
  await measures.record(node.id, 'other:1', { ...PULL, image_bytes: 70 });
  expect(await findImageSize(db, 'other:1')).toBe(70);
  expect(await findPullSpeed(db, node.id)).toMatchObject({ pulls: 1 });
});

it('counts a pull again if storing it failed', async () => {
  const { db } = market.ports;
  const measures = createPullRecorder(market.ports);
  await db.schema.alterTable('pull_speeds').renameTo('elsewhere').execute();
  await expect(measures.record(node.id, null, PULL)).rejects.toThrow();
  await db.schema.alterTable('elsewhere').renameTo('pull_speeds').execute();
  await measures.record(node.id, null, PULL);
  expect(await findPullSpeed(db, node.id)).toMatchObject({ pulls: 1 });
});

describe('the estimated ready time of a pod', () => {
  it('is set by the rental, follows the progress of the pull, and is cleared when the pod runs', async () => {
    const host = market.agents.host(node.id);
    host.arrives = 'pulling';
    const rented = await rent();
    expect(rented).toMatchObject({ estimated_ready_seconds: 110, eta_basis: 'assumed' });
    await market.sync();
    host.change(rented.id, { pull: { ...NO_PROGRESS, eta_seconds: 40 } });
    await market.sync();
    const eta = { phase: 'pulling', estimated_ready_seconds: 50, eta_basis: 'progress' };
    expect(await podResponse(rented.id)).toMatchObject({ ...eta, message: 'Fetching the image' });
    await market.clock.advance(20_000);
    expect(await podResponse(rented.id)).toMatchObject({ ...eta, estimated_ready_seconds: 30 });
    host.change(rented.id, { phase: 'starting', pull: null });
    await market.sync();
    expect(await podResponse(rented.id)).toMatchObject({
      phase: 'starting',
      estimated_ready_seconds: 10,
      eta_basis: 'assumed',
      message: null,
    });
    await market.clock.advance(15_000);
    expect(await podResponse(rented.id)).toMatchObject({ estimated_ready_seconds: 1 });
    host.change(rented.id, { phase: 'running' });
    await market.sync();
    expect(await podResponse(rented.id)).toMatchObject({
      phase: 'ready',
      estimated_ready_seconds: null,
      eta_basis: null,
    });
  });

  it('is null for a pod that is built from a Dockerfile', async () => {
    const body = { pod_name: 'built', dockerfile_content: 'FROM ubuntu:24.04', gpu_count: 1 };
    const { body: pod } = await market.call('POST', `/executors/${node.id}/rent`, {
      headers: account.key,
      body,
    });
    expect(pod).toMatchObject({ estimated_ready_seconds: null, eta_basis: null });
  });
});

it('derives the start-up time from launches of other images, without their pulls', () => {
  const known = {
    sameImageMs: [],
    isBuiltin: false,
    imageBytes: GB,
    bytesPerSecond: GB / 100,
  };
  expect(launchEstimate({ ...known, anyImageMs: [4_000, 90_000] })).toEqual({
    ms: 104_000,
    basis: 'pull_speed',
    isCached: false,
  });
  expect(launchEstimate({ ...known, anyImageMs: [90_000] }).ms).toBe(130_000);
  expect(launchEstimate({ ...known, imageBytes: null, anyImageMs: [] }).basis).toBe('assumed');
  const endless = { ...known, imageBytes: 2 ** 53, bytesPerSecond: 1, anyImageMs: [] };
  expect(launchEstimate(endless)).toMatchObject({ ms: MAX_WAIT_MS, basis: 'pull_speed' });
  expect([slownessWarning(null), slownessWarning(12_500_000)]).toEqual([null, null]);
});
