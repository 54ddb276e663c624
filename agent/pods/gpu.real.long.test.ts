/**
 * GPUs from the lease to the container, on a separate engine. The cards are simulated: a fake nvidia-smi on the host
 * and a stub of NVIDIA's container toolkit report them. Engine, hooks and containers are real.
 */
import { appendFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { CARD_C, CARD_D, createGpuHost, type GpuHost } from '../../test/fakes/agents/gpu-host.ts';
import { createStubGpuHook, LOSE_GPUS } from '../../test/fakes/agents/stub-gpu-hook.ts';
import { type OwnEngine, startOwnEngine } from '../../test/fakes/engine/own-engine.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { kernelLine, XID_79 } from '../../test/fixtures/kernel-log.ts';
import { H100_A, H100_B, MIG_1G, MIG_3G, xmlDocument } from '../../test/fixtures/nvidia-smi.ts';

const IMAGE = 'podwright.local/base:1';
const CARDS = [H100_A, H100_B, CARD_C, CARD_D];

const hook = createStubGpuHook();
let own: OwnEngine;
let host: GpuHost;

beforeAll(async () => {
  own = await startOwnEngine({ programs: hook.programs });
  host = await createGpuHost(own.socketPath);
  await greedyImage();
});
afterAll(async () => {
  await host?.close();
  await own?.remove();
  hook.remove();
});

/** Makes the built-in image request every GPU, as many public images do. */
async function greedyImage(): Promise<void> {
  await host.agent.core.ensureBuiltinImage();
  const id = (await host.docker('create', IMAGE)).stdout.trim();
  const wishes = ['NVIDIA_VISIBLE_DEVICES=all', 'NVIDIA_DRIVER_CAPABILITIES=all'];
  const changes = wishes.flatMap((wish) => ['--change', `ENV ${wish}`]);
  const { exitCode, stderr } = await host.docker('commit', ...changes, id, IMAGE);
  if (exitCode !== 0) throw new Error(stderr);
  await host.docker('rm', id);
}

/** Launches a pod with these GPUs and waits until it runs. */
async function launch(uuids: string[], change: Parameters<GpuHost['put']>[2] = {}) {
  const id = systemRandom.uuid();
  const sent = await host.put(id, uuids, change);
  expect(sent.statusCode, sent.body).toBe(200);
  return host.until(id, 'running');
}

async function removed(id: string): Promise<void> {
  await host.remove(id);
  await host.until(id, 'removed');
}

function callsOf(containerId: string | null) {
  return hook.calls().filter((call) => call.containerId === containerId);
}

it('tests at its start whether containers get GPUs, and reports the result', async () => {
  const tried = await eventually('a try of the runtime', () =>
    hook.calls().find(({ visibleDevices }) => visibleDevices === H100_B),
  );
  expect(tried).toBeDefined();
  await eventually('the runtime', async () => (await host.inventory()).docker.gpu_runtime);
});

it('gives a container exactly the leased GPUs, whatever the renter and the image request', async () => {
  const environment = { NVIDIA_VISIBLE_DEVICES: 'all', NVIDIA_DRIVER_CAPABILITIES: 'all' };
  const pod = await launch([CARD_C, CARD_D], { environment });
  expect(callsOf(pod.container_id)).toEqual([
    {
      containerId: pod.container_id,
      visibleDevices: `${CARD_C},${CARD_D}`,
      capabilities: 'compute,utility,video,graphics,display',
    },
  ]);
  const inside = await host.docker('exec', pod.container_id ?? '', 'nvidia-smi', '-L');
  expect(inside.stdout.match(/GPU-[0-9a-f-]{36}/g)).toEqual([CARD_C, CARD_D]);
  await removed(pod.id);
});

it('runs a pod on the memory node of its GPUs, and without placement if the engine refuses it', async () => {
  const placeOf = async (uuids: string[]) => {
    const pod = await launch(uuids);
    const format = '{{.HostConfig.CpusetCpus}}/{{.HostConfig.CpusetMems}}';
    const { stdout } = await host.docker('inspect', '--format', format, pod.container_id ?? '');
    await removed(pod.id);
    return stdout.trim();
  };
  expect(await placeOf([H100_B])).toBe('0/0');
  expect(await placeOf([H100_B, CARD_C])).toBe('/');
  // The agent believes that node 1 exists; the kernel does not have it.
  expect(await placeOf([CARD_C, CARD_D])).toBe('/');
});

it('gives a container without leases no GPUs, even if its image requests all', async () => {
  const pod = await launch([], { environment: { NVIDIA_VISIBLE_DEVICES: 'all' } });
  expect(callsOf(pod.container_id)).toEqual([]);
  const inside = await host.docker('exec', pod.container_id ?? '', 'env');
  expect(inside.stdout).toContain('NVIDIA_VISIBLE_DEVICES=void\n');
  await removed(pod.id);
});

it('leases and passes MIG devices by UUID, never their card', async () => {
  const pod = await launch([MIG_3G, MIG_1G]);
  expect(callsOf(pod.container_id)[0]?.visibleDevices).toBe(`${MIG_3G},${MIG_1G}`);
  const { gpu } = await host.inventory();
  const device = gpu.devices.find(({ uuid }) => uuid === MIG_3G);
  expect(device).toMatchObject({
    leased_by: pod.id,
    lease_state: 'held',
    mig: { profile: '3g.40gb', parent_uuid: H100_A },
  });
  const card = await host.put(systemRandom.uuid(), [H100_A]);
  expect(card.json().error?.code ?? card.json().code).toBe('gpu_unavailable');
  await removed(pod.id);
});

it.each([
  ['nvidia-container-cli: initialization error: nvml error: driver not loaded', 'RuntimeMissing'],
  [`nvidia-container-cli: device error: ${H100_B}: unknown device`, 'GpuUnavailable'],
])('reports the reason of a refusal: %s', async (words, reason) => {
  hook.fail(words);
  const id = systemRandom.uuid();
  await host.put(id, [H100_B]);
  const failed = await host.until(id, 'failed');
  hook.fail(null);
  expect(failed).toMatchObject({ reason });
  expect(failed.message).toContain(words);
  await removed(id);
});

it('retries a start after a runtime hook failed, and shows the hook’s error', async () => {
  hook.fail('the disk of the driver is on fire');
  const id = systemRandom.uuid();
  await host.put(id, [H100_B]);
  const waiting = await host.until(id, 'backoff');
  expect(waiting).toMatchObject({ reason: 'StartFailed' });
  expect(waiting.message).toContain('the disk of the driver is on fire');
  hook.fail(null);
  await host.until(id, 'running');
  await removed(id);
});

it('detects from inside the pod that it has lost its GPUs, until a reboot restores them', async () => {
  const { gpuProbe } = host.agent.core;
  const pod = await launch([H100_B]);
  const health = async () =>
    (await host.view(pod.id)).conditions.find(({ type }) => type === 'GpuHealthy');
  await gpuProbe.runOnce();
  expect(await health()).toMatchObject({ status: true });
  await host.docker('exec', pod.container_id ?? '', 'touch', LOSE_GPUS);
  for (const _ of [1, 2]) await gpuProbe.runOnce();
  expect(await health()).toMatchObject({ status: true });
  await gpuProbe.runOnce();
  expect(await health()).toMatchObject({ status: false, reason: 'GpuLostInContainer' });
  await host.reboot(pod.id, 1);
  await eventually('the reboot', async () => (await host.view(pod.id)).reboots_done === 1);
  await host.until(pod.id, 'running');
  await gpuProbe.runOnce();
  expect(await health()).toMatchObject({ status: true });
  await removed(pod.id);
});

it('removes a pod whose process stays on the card, and blocks the card until the process has ended', async () => {
  const pod = await launch([CARD_C]);
  host.become({ apps: `${CARD_C}, 4242\n` });
  await removed(pod.id);
  await eventually('the dirty lease in the inventory', async () => {
    const { gpu } = await host.inventory();
    return gpu.devices.some(({ uuid, lease_state }) => uuid === CARD_C && lease_state === 'dirty');
  });
  const refused = await host.put(systemRandom.uuid(), [CARD_C]);
  expect(refused.statusCode).toBe(409);
  expect(refused.body).toContain('GpuDirty');
  await eventually('the alert', async () => {
    const { body } = await host.agent.server.inject('/metrics');
    return body.includes(`podwright_agent_gpu_lease_state{uuid="${CARD_C}",state="dirty"} 1`);
  });
  host.become({ apps: '' });
  await eventually('the free card', async () => {
    const { gpu } = await host.inventory();
    return gpu.devices.some(({ uuid, lease_state }) => uuid === CARD_C && lease_state === 'free');
  });
  await removed((await launch([CARD_C])).id);
});

it('rejects new pods on a faulty card, and reports the fault to the pod on it', async () => {
  const { gpuHealth, gpuWatch } = host.agent.core;
  const pod = await launch([H100_B]);
  await gpuWatch.runOnce();
  // PCI address of H100_B: 2B; of CARD_C: 3B.
  const uptimeUs = Math.round((systemClock.now() + 1_000) * 1_000);
  const text = XID_79.replace('1b:00', '2b:00');
  appendFileSync(host.kernelLog, `${kernelLine(1, text, uptimeUs)}\n`);
  const health = { [CARD_C]: { remapFailure: 'Yes' } };
  host.become({ xml: xmlDocument({ uuids: CARDS, mig: [H100_A], processes: [], health }) });
  await gpuHealth.runOnce();
  await eventually('both cordons', async () => {
    const { gpu } = await host.inventory();
    const reasons = gpu.devices.map(({ uuid, cordoned }) => [uuid, cordoned?.reason ?? null]);
    return (
      JSON.stringify(reasons.filter(([, reason]) => reason !== null)) ===
      JSON.stringify([
        [H100_B, 'Xid: Xid 79 in the kernel log'],
        [CARD_C, 'RowRemapFailure: a row could not be remapped'],
      ])
    );
  });
  for (const uuid of [H100_B, CARD_C]) {
    const refused = await host.put(systemRandom.uuid(), [uuid]);
    expect(refused.statusCode).toBe(409);
  }
  await eventually('the condition of the pod', async () => {
    const { conditions, phase } = await host.view(pod.id);
    const found = conditions.find(({ type }) => type === 'GpuHealthy');
    return phase === 'running' && found?.reason === 'GpuUnhealthy' && /Xid 79/.test(found.message);
  });
  host.become({ xml: xmlDocument({ uuids: CARDS, mig: [H100_A], processes: [] }) });
  await gpuHealth.runOnce();
  await removed((await launch([CARD_C])).id);
  await removed(pod.id);
});

/** Must be the last test: after one refusal, the agent does not request the display capability again. */
it('omits the display capability after one refusal if the host lacks its device', async () => {
  hook.setModeset(false);
  const first = await launch([CARD_D]);
  const calls = hook.calls().slice(-2);
  expect(calls.map(({ capabilities }) => capabilities)).toEqual([
    'compute,utility,video,graphics,display',
    'compute,utility,video,graphics',
  ]);
  expect(calls[1]?.containerId).toBe(first.container_id);
  expect(first).toMatchObject({ restart_count: 0, reason: null });
  const before = hook.calls().length;
  const second = await launch([CARD_C]);
  expect(hook.calls().length).toBe(before + 1);
  await removed(first.id);
  await removed(second.id);
});

it('reports an engine without the NVIDIA toolkit and rejects the launch', async () => {
  const bare = await startOwnEngine();
  const without = await createGpuHost(bare.socketPath);
  try {
    const { verify } = await eventually('a try of the runtime', async () => {
      const { docker } = await without.inventory();
      return { verify: docker.gpu_runtime };
    });
    expect(verify).toBe(false);
    const id = systemRandom.uuid();
    await without.put(id, [H100_B]);
    const failed = await without.until(id, 'failed');
    expect(failed).toMatchObject({ reason: 'RuntimeMissing' });
    expect(failed.message).toMatch(/could not select device driver/);
    await without.remove(id);
    await without.until(id, 'removed');
  } finally {
    await without.close();
    await bare.remove();
  }
});
