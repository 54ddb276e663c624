import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  A_MINUTE_MS,
  type ChangingPod,
  createChangingPod,
  GPUS,
  ID,
  MISSING,
  OTHER_IMAGE,
  PROVEN_MS,
} from '../../test/fakes/agents/changing-pod.ts';
import type { EngineError } from '../containers/engine/engine.ts';
import { LOGIN_WAIT_MS } from './trial.plan.ts';

let pod: ChangingPod;
beforeEach(() => {
  pod = createChangingPod();
});
afterEach(() => pod.agent().stop());

it.each<[string, EngineError['kind'], string]>([
  ['createContainer', 'refused', 'SpecRefused'],
  ['createContainer', 'deadline', 'DeadlineExceeded'],
  ['startContainer', 'refused', 'StartFailed'],
  ['startContainer', 'device', 'RuntimeMissing'],
])('rolls back when %s fails with %s', async (method, kind, reason) => {
  const before = await pod.launched();
  pod.breakNew(method, kind);
  await pod.put(2, { environment: { A: 'b' } });
  await pod.pass(10 * A_MINUTE_MS);
  expect(pod.view()).toMatchObject({
    phase: 'running',
    container_id: before.container_id,
    ports: before.ports,
    generation: 2,
    observed_generation: 1,
    restart_count: 0,
    last_exit: null,
    change: { generation: 2, stage: 'failed', reason },
  });
  expect(pod.containers()).toMatchObject([{ id: before.container_id, status: 'running' }]);
});

it('rolls back when the new container ends during its trial', async () => {
  const before = await pod.launched();
  await pod.put(2, { command: ['crash'] });
  await pod.settle();
  pod.engine.exit(pod.view().container_id ?? '', 7);
  await pod.settle();
  expect(pod.view()).toMatchObject({
    phase: 'running',
    container_id: before.container_id,
    last_exit: null,
    change: { stage: 'failed', reason: 'ExitedNonZero', message: expect.stringContaining('7') },
  });
  expect(pod.containers()).toHaveLength(1);
});

it('releases the new ports and GPUs of a failed change', async () => {
  const [one = '', two = ''] = GPUS;
  const change = { internal_ports: [80, 81], gpu_uuids: [one] };
  const before = await pod.launched(change);
  await pod.put(2, { internal_ports: [81, 82], gpu_uuids: [two], image: { reference: MISSING } });
  await pod.settle();
  expect(pod.view()).toMatchObject({ ports: before.ports, gpu_uuids: [one] });
  expect(
    pod
      .agent()
      .core.leases.heldBy('port', ID)
      .map(({ slot }) => slot),
  ).toEqual(['80', '81']);
  expect(pod.agent().core.gpuLeases.uuidsOf(ID)).toEqual([one]);
});

it.each([true, false])(
  'commits only if SSH logins that worked before the change still work: %s',
  async (works) => {
    const ports = { internal_ports: [22] };
    pod.setLogin(() => true);
    const before = await pod.launched(ports);
    pod.setLogin((id) => id === before.container_id || works);
    await pod.put(2, ports);
    await pod.pass(PROVEN_MS);
    if (!works) {
      expect(pod.view().change).toMatchObject({ stage: 'settling' });
      await pod.pass(LOGIN_WAIT_MS);
      expect(pod.view().change).toMatchObject({ stage: 'failed', reason: 'StartFailed' });
      expect(pod.view().change?.message).toContain('no shell');
    }
    expect(pod.view()).toMatchObject({ phase: 'running', observed_generation: works ? 2 : 1 });
  },
);

it('rolls back when the new container fills the disk', async () => {
  const limits = { cpu_cores: 1, memory_bytes: 2 ** 26, shm_bytes: 0, pids: 64 };
  const before = await pod.launched({ limits });
  await pod.put(2, { limits: { ...limits, disk_bytes: 2 ** 24 } });
  await pod.settle();
  pod.engine.diskBytes.set(pod.view().container_id ?? '', 2 ** 25);
  await pod.agent().core.diskWatch.runOnce();
  await pod.pass(10_000);
  expect(pod.view()).toMatchObject({
    phase: 'running',
    container_id: before.container_id,
    change: { stage: 'failed', reason: 'DiskQuotaExceeded' },
  });
});

it('changes a pod that was stopped for its disk use, and keeps no fallback', async () => {
  const limits = { cpu_cores: 1, memory_bytes: 2 ** 26, shm_bytes: 0, pids: 64 };
  const before = await pod.launched({ limits: { ...limits, disk_bytes: 2 ** 24 } });
  const release = pod.hold('pullImage');
  await pod.put(2, { image: { reference: OTHER_IMAGE }, limits });
  await pod.settle();
  pod.engine.diskBytes.set(before.container_id ?? '', 2 ** 25);
  await pod.agent().core.diskWatch.runOnce();
  await pod.settle();
  expect(pod.view()).toMatchObject({ phase: 'failed', reason: 'DiskQuotaExceeded' });
  release();
  await pod.settle();
  expect(pod.view()).toMatchObject({ phase: 'running', observed_generation: 2, change: null });
  expect(pod.containers()).toHaveLength(1);
});

it('restarts a new container that ends after its trial instead of rolling back', async () => {
  await pod.launched();
  await pod.put(2);
  await pod.pass(PROVEN_MS);
  pod.engine.exit(pod.view().container_id ?? '', 7);
  await pod.pass(A_MINUTE_MS);
  expect(pod.view()).toMatchObject({ phase: 'running', observed_generation: 2, restart_count: 1 });
});
