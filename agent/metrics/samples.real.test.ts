/** A pod that works on the real engine, and what the agent says that it uses. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { HostMetrics, PodMetrics } from '#shared/agent-api/metrics.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { createRealHost, type RealHost } from '../../test/fakes/real-host.ts';

let host: RealHost;
beforeAll(async () => {
  host = await createRealHost();
});
afterAll(() => host?.close());

it("finds a pod's processors and memory in use, and the host's", async () => {
  const pod = await host.launch('while :; do :; done');
  const read = async (path: string) => {
    await host.agent.samples.runOnce();
    return (await host.agent.server.inject(path)).json();
  };
  const busy = await eventually('a busy pod', async () => {
    const metrics = PodMetrics.parse(await read(`/v1/pods/${pod.id}/metrics`));
    return (metrics.cpu.used_cores ?? 0) > 0 && metrics;
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

it('finds that nobody uses a pod that only waits', async () => {
  const pod = await host.launch('sleep 1000');
  const waiting = await eventually('an idle pod', async () => {
    await host.agent.samples.runOnce();
    const metrics = (await host.agent.server.inject(`/v1/pods/${pod.id}/metrics`)).json();
    return PodMetrics.parse(metrics).idle_ms !== null && metrics;
  });
  expect(waiting.cpu.used_cores).toBeLessThan(0.1);
});
