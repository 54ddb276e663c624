import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NO_PROGRESS } from '#shared/api/agent/images.ts';
import { mailsTo } from '../../../../test/fakes/scenes/outbox.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';

const MINUTE_MS = 60_000;
const MB = 1_000_000;

let scene: PodScene;
let host: PodScene['host'];
beforeEach(async () => {
  scene = await createPodScene();
  ({ host } = scene);
});
afterEach(() => scene.close());

/** Rents a pod whose agent has begun to pull its image. */
async function pulling(): Promise<string> {
  host.arrives = 'pulling';
  return scene.running();
}

/** Reports the number of bytes of the image that have been pulled. */
function arrived(id: string, megabytes: number): void {
  const pull = { ...NO_PROGRESS, layers_total: 1, bytes_done: Math.round(megabytes * MB) };
  host.change(id, { phase: 'pulling', pull });
}

/** Pulls `megabytesPerMinute` of the image for some minutes, after `from` megabytes. */
async function arriving(id: string, minutes: number, megabytesPerMinute: number, from = 0) {
  for (let minute = 1; minute <= minutes; minute += 1) {
    arrived(id, from + minute * megabytesPerMinute);
    await scene.later(MINUTE_MS);
  }
}

const statusOf = async (id: string) => (await scene.pod(id)).status;

describe('a launch that does not succeed', () => {
  it('fails after 10 minutes with its reason, and releases node and hold at the same time', async () => {
    const id = await pulling();
    const message = 'the registry does not answer';
    host.change(id, { phase: 'backoff', reason: 'ImageUnreachable', message });
    await scene.later(10 * MINUTE_MS - 1);
    expect(await statusOf(id)).toBe('PENDING');
    expect(await scene.held()).toBe(0.55);
    host.removesAtOnce = false;
    await scene.later(1);
    expect(await scene.pod(id)).toMatchObject({
      status: 'CREATION_FAILED',
      reason_code: 'image_pull_failed',
      message: `Not running after 10 minutes: ${message}`,
    });
    expect(await scene.freeGpus()).toBe(2);
    expect(await scene.held()).toBe(0);
    await scene.later(1_000);
    expect(host.calls).toEqual([`put ${id}`, `delete ${id}`]);
    expect((await scene.events(id)).at(-1)).toMatchObject({
      sub_event_type: 'pod-create.failed',
      to_status: 'CREATION_FAILED',
      reason: 'image_pull_failed',
      error: `Not running after 10 minutes: ${message}`,
    });
    const mails = await mailsTo(scene.market, scene.account.email);
    expect(mails.filter(({ kind }) => kind === 'pod-failed')).toHaveLength(1);
    const statement = (await scene.call('GET', `/pods/${id}/statement`)).body;
    expect(statement).toMatchObject({ total: 0, billed_seconds: 0, lines: [] });
    // The same GPUs can be rented again.
    host.arrives = 'running';
    expect(await statusOf(await scene.running({ gpu_count: 2 }))).toBe('RUNNING');
  });

  it('fails with start_failed if its process repeatedly exits at once', async () => {
    const id = await pulling();
    const container_id = 'c'.repeat(64);
    for (let minute = 0; minute < 10; minute += 1) {
      const message = 'The process ended with exit code 1';
      host.change(id, { container_id, phase: 'starting' });
      await scene.later(1_000);
      host.change(id, { phase: 'backoff', reason: 'CrashLoopBackOff', message });
      await scene.later(MINUTE_MS - 1_000);
      if (minute < 9) expect(await statusOf(id)).toBe('PENDING');
    }
    expect(await scene.pod(id)).toMatchObject({
      status: 'CREATION_FAILED',
      reason_code: 'start_failed',
      message: 'Not running after 10 minutes: The process ended with exit code 1',
    });
  });

  /** Makes the node report that the pod's process has ended with exit code 1. */
  function crashed(id: string, change: object = {}): void {
    const finished_ms = scene.market.clock.now();
    const last_exit = { exit_code: 1, oom_killed: false, finished_ms, reason: 'ExitedNonZero' };
    const message = 'The process ended with exit code 1';
    const crash = { phase: 'backoff', reason: 'CrashLoopBackOff', message, last_exit };
    host.change(id, { launched: false, ...crash, ...change } as object);
  }

  it('names the exit code of the last attempt while the container starts again', async () => {
    const id = await scene.running();
    crashed(id, { phase: 'starting', reason: null, message: '' });
    await scene.later(600_000);
    expect(await scene.pod(id)).toMatchObject({
      status: 'CREATION_FAILED',
      reason_code: 'start_failed',
      message: 'Not running after 10 minutes: The last attempt ended with exit code 1',
    });
  });

  it('fails with start_failed if its process runs only for moments, and only these moments are charged', async () => {
    const id = await scene.running();
    await scene.later(30_000);
    expect(await statusOf(id)).toBe('RUNNING');
    crashed(id);
    await scene.later(10_000);
    expect(await scene.pod(id)).toMatchObject({
      status: 'PENDING',
      phase: 'starting',
      reason_code: 'start_failed',
      ssh_connect_cmd: null,
    });
    for (let round = 0; round < 55; round += 1) {
      host.change(id, { phase: round % 2 === 0 ? 'running' : 'backoff' });
      await scene.later(10_000);
      expect(await statusOf(id)).toBe('PENDING');
    }
    await scene.later(9_999);
    expect(await statusOf(id)).toBe('PENDING');
    await scene.later(1);
    expect(await scene.pod(id)).toMatchObject({
      status: 'CREATION_FAILED',
      reason_code: 'start_failed',
      message: 'Not running after 10 minutes: The process ended with exit code 1',
    });
    expect(await scene.freeGpus()).toBe(2);
    expect(await scene.held()).toBe(0);
    const statement = (await scene.call('GET', `/pods/${id}/statement`)).body;
    expect(statement).toMatchObject({ billed_seconds: 40 });
    const mails = await mailsTo(scene.market, scene.account.email);
    expect(mails.filter(({ kind }) => kind === 'pod-failed')).toHaveLength(1);
  });

  it('ends immediately if its process ends after the limit and has not run for half a minute', async () => {
    const id = await scene.running();
    await scene.later(10 * MINUTE_MS);
    crashed(id);
    host.change(id, { phase: 'running' });
    await scene.later(10_000);
    expect(await statusOf(id)).toBe('CREATION_FAILED');
  });

  it('runs again once its process has run for half a minute, and remains running after later crashes', async () => {
    const id = await scene.running();
    crashed(id);
    await scene.later(10_000);
    host.change(id, { phase: 'running', reason: null, message: '' });
    await scene.later(5_000);
    expect(await statusOf(id)).toBe('PENDING');
    host.change(id, { launched: true });
    await scene.later(1_000);
    expect(await statusOf(id)).toBe('RUNNING');
    crashed(id, { launched: true });
    await scene.later(15 * MINUTE_MS);
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING', phase: 'starting' });
  });

  it('ends even if its node does not respond after the crash', async () => {
    const id = await pulling();
    await arriving(id, 9, 50);
    host.change(id, { phase: 'running', pull: null });
    // When the first limit is due, the pod runs.
    await scene.later(2 * MINUTE_MS);
    expect(await statusOf(id)).toBe('RUNNING');
    crashed(id);
    await scene.later(10_000);
    expect(await statusOf(id)).toBe('PENDING');
    host.up = false;
    await scene.later(20 * MINUTE_MS);
    await scene.later(30_000);
    expect(await scene.pod(id)).toMatchObject({
      status: 'CREATION_FAILED',
      reason_code: 'provider_fault',
    });
  });

  it('does not fail because of an exit that a reboot of the host caused', async () => {
    const id = await scene.running();
    const exit = { exit_code: 137, oom_killed: false, finished_ms: 1, reason: 'HostReboot' };
    crashed(id, { reason: 'HostReboot', last_exit: exit });
    await scene.later(10_000);
    expect(await statusOf(id)).toBe('RUNNING');
  });

  it('runs if its agent reports it as running just before the limit', async () => {
    const id = await pulling();
    await scene.later(10 * MINUTE_MS - 1);
    host.change(id, { phase: 'running' });
    await scene.later(1);
    expect(await statusOf(id)).toBe('RUNNING');
    await scene.later(MINUTE_MS);
    expect(await statusOf(id)).toBe('RUNNING');
  });

  it('fails at another limit if the operator sets one', async () => {
    await scene.close();
    scene = await createPodScene({ launchLimitMs: 3 * MINUTE_MS });
    ({ host } = scene);
    const id = await pulling();
    await scene.later(3 * MINUTE_MS - 1);
    expect(await statusOf(id)).toBe('PENDING');
    await scene.later(1);
    expect(await scene.pod(id)).toMatchObject({ status: 'CREATION_FAILED' });
  });

  it('has the whole limit from the upgrade on if the launch began before the upgrade', async () => {
    const id = await pulling();
    const before = { launch_began_at: null, launch_until: null, launch_bytes_at: null };
    await scene.market.ports.db.updateTable('pods').set(before).execute();
    await scene.later(10 * MINUTE_MS);
    await scene.later(10 * MINUTE_MS - 1);
    expect(await statusOf(id)).toBe('PENDING');
    await scene.later(1);
    expect(await statusOf(id)).toBe('CREATION_FAILED');
  });
});

describe('a launch whose image is being pulled', () => {
  it('is prolonged to at most 2 hours by 1 MB per minute', async () => {
    const id = await pulling();
    await arriving(id, 119, 1);
    expect(await statusOf(id)).toBe('PENDING');
    await arriving(id, 1, 1, 119);
    expect(await scene.pod(id)).toMatchObject({
      status: 'CREATION_FAILED',
      reason_code: 'image_pull_failed',
    });
  });

  it('is not prolonged by less than 1 MB per minute', async () => {
    const id = await pulling();
    await arriving(id, 9, 0.9);
    expect(await statusOf(id)).toBe('PENDING');
    await arriving(id, 1, 0.9, 8.1);
    expect(await statusOf(id)).toBe('CREATION_FAILED');
  });

  it('fails a minute after the pull of the image has stalled', async () => {
    const id = await pulling();
    await arriving(id, 30, 50);
    await scene.later(MINUTE_MS - 1);
    expect(await statusOf(id)).toBe('PENDING');
    await scene.later(1);
    expect(await statusOf(id)).toBe('CREATION_FAILED');
  });

  it('counts unpacked bytes, and counts the bytes of a repeated pull from zero', async () => {
    const id = await pulling();
    await arriving(id, 12, 10);
    const pull = { ...NO_PROGRESS, layers_total: 1, bytes_done: 120 * MB };
    host.change(id, { pull: { ...pull, bytes_extracted: 5 * MB } });
    await scene.later(MINUTE_MS);
    expect(await statusOf(id)).toBe('PENDING');
    arrived(id, 1);
    await scene.later(MINUTE_MS / 2);
    arrived(id, 3);
    await scene.later(MINUTE_MS / 2 - 1);
    expect(await statusOf(id)).toBe('PENDING');
  });

  it('gets the whole limit for its container once the image is complete', async () => {
    const id = await pulling();
    await arriving(id, 30, 50);
    host.change(id, { phase: 'creating', pull: null });
    await scene.later(1_000);
    host.change(id, { phase: 'backoff', reason: 'CrashLoopBackOff', container_id: 'c'.repeat(64) });
    await scene.later(10 * MINUTE_MS - 1);
    expect(await statusOf(id)).toBe('PENDING');
    await scene.later(1);
    expect(await scene.pod(id)).toMatchObject({
      status: 'CREATION_FAILED',
      reason_code: 'start_failed',
    });
  });

  it('is prolonged while the image is built, to at most 2 hours', async () => {
    host.arrives = 'building';
    const id = await scene.running();
    for (let minute = 0; minute < 119; minute += 1) await scene.later(MINUTE_MS);
    expect(await scene.pod(id)).toMatchObject({ status: 'PENDING', phase: 'building' });
    await scene.later(MINUTE_MS);
    expect(await scene.pod(id)).toMatchObject({
      status: 'CREATION_FAILED',
      reason_code: 'build_failed',
    });
  });
});

describe('a launch without contact', () => {
  it('continues after a restart of the central API if the image was pulled in the meantime', async () => {
    const id = await pulling();
    await arriving(id, 5, 10);
    // No pass of the sync and no due work.
    await scene.market.clock.advance(20 * MINUTE_MS);
    arrived(id, 100);
    await scene.later(0);
    expect(await statusOf(id)).toBe('PENDING');
    await arriving(id, 5, 10, 100);
    expect(await statusOf(id)).toBe('PENDING');
    host.change(id, { phase: 'running' });
    await scene.later(1_000);
    expect(await statusOf(id)).toBe('RUNNING');
  });

  it('runs after a restart of the central API if the launch succeeded in the meantime', async () => {
    const id = await pulling();
    host.change(id, { phase: 'running' });
    await scene.market.clock.advance(20 * MINUTE_MS);
    await scene.later(0);
    expect(await statusOf(id)).toBe('RUNNING');
  });

  it('fails half a minute after its limit, and releases its GPU when the node answers', async () => {
    const id = await pulling();
    host.up = false;
    await scene.later(10 * MINUTE_MS);
    expect(await statusOf(id)).toBe('PENDING');
    await scene.later(30_000);
    expect(await scene.pod(id)).toMatchObject({
      status: 'CREATION_FAILED',
      reason_code: 'provider_fault',
    });
    expect(await scene.held()).toBe(0);
    expect(await scene.freeGpus()).toBe(1);
    host.up = true;
    await scene.later(31_000);
    expect(host.calls).toEqual([`put ${id}`, `delete ${id}`]);
    expect(await scene.freeGpus()).toBe(2);
  });
});

it.each(['reboot', 'edit'])('does not limit the time of a %s of a running pod', async (kind) => {
  const id = await scene.running();
  if (kind === 'reboot') await scene.post(id, 'reboot', {});
  else await scene.call('PUT', `/pods/${id}`, { environment: { A: '1' } });
  const change = { generation: 2, stage: 'preparing' as const, reason: null, message: '' };
  host.change(id, { phase: 'pulling', ...(kind === 'edit' ? { generation: 2, change } : {}) });
  for (let minute = 0; minute < 15; minute += 1) await scene.later(MINUTE_MS);
  expect(await statusOf(id)).toBe('REBOOT_PENDING');
});
