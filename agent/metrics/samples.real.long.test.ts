/** Measures a busy pod on the real engine. */
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { HostMetrics, PodMetrics } from '#shared/api/agent/metrics.ts';
import { createRealHost, type RealHost } from '../../test/fakes/agents/real-host.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import type { ContainerUsage } from '../containers/engine/engine.ts';
import { createFileUsage, createKernelFiles } from './usage/kernel-usage.ts';

const MIB = 2 ** 20;
/** Processor use of a sleeping pod between two samples, on a busy host. */
const CPU_NANOS_APART = 1e8;

let host: RealHost;
beforeAll(async () => {
  host = await createRealHost();
});
afterAll(() => host?.close());

it('measures processors and memory of a pod and of the host', async () => {
  const pod = await host.launch('while :; do :; done');
  const read = async (path: string) => {
    await host.agent.samples.runOnce();
    return (await host.agent.server.inject(path)).json();
  };
  const busy = await eventually('a busy pod', async () => {
    const metrics = PodMetrics.parse(await read(`/v1/pods/${pod.id}/metrics`));
    // On a busy host the pod may seem idle at first.
    return (metrics.cpu.used_cores ?? 0) > 0.1 && metrics;
  });
  expect(busy.memory.used_bytes).toBeGreaterThan(0);
  expect(busy.memory.used_bytes).toBeLessThanOrEqual(busy.memory.limit_bytes);
  expect(busy).toMatchObject({ gpus: [], history: [], idle_ms: null });
  const whole = await eventually('the traffic', async () => {
    const metrics = HostMetrics.parse(await read('/v1/metrics/host'));
    return metrics.network.rx_bytes_per_second !== null && metrics;
  });
  expect(whole.cpu.load_1m).toBeGreaterThanOrEqual(0);
  expect(whole.disk.total_kib).toBeGreaterThan(0);
});

it("reads the same values from the kernel's files as from the engine", async () => {
  // Uses every resource, then sleeps.
  const busy =
    'dd if=/dev/zero of=/tmp/file bs=64k count=64 conv=fsync; ping -c 2 -i 0.1 -W 1 127.0.0.1; touch /tmp/done';
  const pod = await host.launch(`${busy}; sleep 600 & sleep 600`);
  const id = pod.container_id ?? '';
  const inside = `${await eventually('its first process', async () => (await host.engine.inspectContainer(id))?.pid)}`;
  await eventually('a pod at rest', () => existsSync(`/proc/${inside}/root/tmp/done`));
  const files = createFileUsage(createKernelFiles());
  const place = files.locate(id, Number(inside));
  const [before, engine, after] = [
    files.read(place),
    await host.engine.containerUsage(id),
    files.read(place),
  ];
  if (engine === null) throw new Error('the engine reports no figures of a running pod');
  const near = (figure: (usage: ContainerUsage) => number | null | undefined, apart: number) => {
    const [least, told, most] = [before, engine, after].map((usage) => figure(usage) ?? -1);
    expect(told).toBeGreaterThanOrEqual((least ?? 0) - apart);
    expect(told).toBeLessThanOrEqual((most ?? 0) + apart);
  };
  near(({ cpuNanos }) => cpuNanos, CPU_NANOS_APART);
  expect(before.cpuNanos).toBeGreaterThan(0);
  for (const memory of [
    'memoryBytes',
    'memoryWithFilesBytes',
    'residentBytes',
    'cacheBytes',
  ] as const) {
    near((usage) => usage[memory], MIB);
  }
  expect(before.memoryWithFilesBytes).toBeGreaterThan(0);
  near(({ network }) => network?.receivedBytes, 1_000);
  near(({ network }) => network?.sentBytes, 1_000);
  expect(before.network).not.toBeNull();
  near(({ blockIo }) => blockIo?.readBytes, 0);
  near(({ blockIo }) => blockIo?.writtenBytes, 0);
  expect([before.tasks, engine.tasks]).toEqual([3, 3]);
});

it('detects an idle pod', async () => {
  const pod = await host.launch('sleep 1000');
  const waiting = await eventually('an idle pod', async () => {
    await host.agent.samples.runOnce();
    const metrics = (await host.agent.server.inject(`/v1/pods/${pod.id}/metrics`)).json();
    return PodMetrics.parse(metrics).idle_ms !== null && metrics;
  });
  expect(waiting.cpu.used_cores).toBeLessThan(0.1);
});
