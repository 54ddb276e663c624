/** Tests /metrics of an agent with a pod on the fake engine; promtool accepts every name. */
import { execFileSync } from 'node:child_process';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { MAX_SCRAPES, registerMetricsRoute } from '#shared/http/scrape.ts';
import { createHttpServer } from '#shared/http/server.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createTestAgent, NO_GATEWAY, podSpec } from '../../test/fakes/agents/test-agent.ts';
import { createFakeEngine } from '../../test/fakes/engine/fake-engine.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import type { Agent, AgentPorts } from '../app.ts';
import type { GpuReading } from '../gpu/gpu-driver.ts';
import { createGpuSource } from '../gpu/gpu-lease.ts';
import { createSimulatedDriver } from '../gpu/simulated-gpus.ts';
import { createMetrics } from './metrics.ts';

const IMAGE = 'registry.example/one:1';
const SECOND_MS = 1_000;

let agent: Agent;
let clock: ReturnType<typeof createManualClock>;
let engine: ReturnType<typeof createFakeEngine>;
let metrics: ReturnType<typeof createMetrics>;
let shown: Partial<GpuReading>;
beforeEach(() => {
  shown = {};
  begin();
});
afterEach(() => agent.stop());

/** Starts an agent with one whole card and one split by MIG. */
function begin(ports: Partial<AgentPorts> = {}): void {
  clock = createManualClock();
  engine = createFakeEngine(clock);
  engine.addImage(IMAGE, `sha256:${'a1'.repeat(32)}`);
  const executorId = systemRandom.uuid();
  const simulated = createSimulatedDriver(executorId, ['NVIDIA L4', 'NVIDIA H100[1g.10gb*2]']);
  const gpuDriver = { ...simulated, read: async () => ({ ...(await simulated.read()), ...shown }) };
  metrics = createMetrics({ clock, executorId });
  agent = createTestAgent({
    clock,
    engine,
    executorId,
    gpuDriver,
    metrics,
    gpus: createGpuSource(gpuDriver),
    separateMonitoring: true,
    ...ports,
  });
}

async function again(ports: Partial<AgentPorts>): Promise<void> {
  await agent.stop();
  begin(ports);
}

async function scrape(): Promise<string[]> {
  const { body } = await (agent.monitoring ?? agent.server).inject('/metrics');
  return body.split('\n');
}

/** Returns the UUIDs of both cards, the whole card first. */
async function cardUuids(): Promise<string[]> {
  await agent.samples.runOnce();
  return (agent.samples.gpus()?.reading.cards ?? []).map(({ uuid }) => uuid);
}

/** Launches a pod with the whole card and waits until it is running. */
async function launch(): Promise<{ id: string; uuid: string; containerId: string }> {
  const uuid = (await cardUuids())[0] ?? '';
  const id = systemRandom.uuid();
  const template = 'Renter\'s "own"\nback\\slash';
  const payload = podSpec({ image: { reference: IMAGE }, gpu_uuids: [uuid], template });
  await agent.server.inject({ method: 'PUT', url: `/v1/pods/${id}`, payload });
  await eventually('the pod', () => agent.pods.get(id).phase === 'running');
  const containerId = agent.pods.get(id).container_id ?? '';
  engine.usages.set(containerId, {
    cpuNanos: 2.5e9,
    memoryBytes: 4_096,
    memoryWithFilesBytes: 8_192,
    residentBytes: 2_048,
    cacheBytes: 6_144,
    tasks: 3,
    network: { receivedBytes: 10, sentBytes: 20 },
    blockIo: { readBytes: 30, writtenBytes: 40 },
  });
  return { id, uuid, containerId };
}

it('passes promtool with all metrics except those under NVIDIA names', async () => {
  await launch();
  await agent.metricsJob.runOnce();
  await agent.core.reconcile.runOnce();
  metrics.authFailed('skew');
  metrics.timedOut('gpu');
  const input = (await scrape()).join('\n');
  expect(execFileSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' })).toBe('');
});

it('exports sessions and failed logins of the SSH gateway, and nothing while it is not running', async () => {
  await agent.metricsJob.runOnce();
  expect((await scrape()).filter((line) => line.startsWith('podwright_agent_ssh_'))).toEqual([]);
  const traffic = {
    sessions: 2,
    sessions_total: 5,
    login_failures_total: 7,
    sessions_by_pod: null,
  };
  await again({ gatewayLink: { ...NO_GATEWAY, traffic: () => traffic } });
  await agent.metricsJob.runOnce();
  expect(await scrape()).toEqual(
    expect.arrayContaining([
      'podwright_agent_ssh_sessions 2',
      'podwright_agent_ssh_sessions_total 5',
      'podwright_agent_ssh_auth_failures_total 7',
    ]),
  );
});

it('exports cards under the names that public dashboards join on', async () => {
  await agent.metricsJob.runOnce();
  const lines = await scrape();
  const uuid = ((await cardUuids())[0] ?? '').replace('GPU-', '').toLowerCase();
  expect(lines).toEqual(
    expect.arrayContaining([
      `nvidia_smi_memory_total_bytes{uuid="${uuid}"} ${23_034 * 2 ** 20}`,
      `nvidia_smi_utilization_gpu_ratio{uuid="${uuid}"} 0`,
      `nvidia_smi_clocks_current_sm_clock_hz{uuid="${uuid}"} 210000000`,
      `nvidia_smi_pstate{uuid="${uuid}"} 8`,
      `nvidia_smi_index{uuid="${uuid}"} 0`,
      'nvidia_smi_last_collect_success 1',
      'nvidia_smi_failed_scrapes_total 0',
      expect.stringMatching(
        `^nvidia_smi_gpu_info{uuid="${uuid}",index="0",name="NVIDIA L4",driver_version="570.86.15",`,
      ),
      expect.stringMatching(/^nvidia_smi_mig_info\{uuid="[^"]+",mig_uuid="MIG-.*profile="1g.10gb"/),
    ]),
  );
  // Missing values are absent, not 0; DCGM names are optional.
  expect(lines.join('\n')).not.toMatch(/^(?:nvidia_smi_fan_speed_ratio|DCGM_)/m);
});

it('exports cards under DCGM names if configured', async () => {
  await again({ gpuMetrics: 'dcgm' });
  await agent.metricsJob.runOnce();
  const text = (await scrape()).join('\n');
  expect(text).toMatch(
    /^DCGM_FI_DEV_FB_FREE\{gpu="0",UUID="GPU-[^"]+",pci_bus_id="",device="nvidia0",modelName="NVIDIA L4",Hostname="test-host"\} 23034$/m,
  );
  expect(text).toMatch(/^DCGM_FI_DEV_FB_USED\{.*GPU_I_PROFILE="1g.10gb",GPU_I_ID="1"\} 0$/m);
  expect(text).not.toMatch(/^nvidia_smi_/m);
});

it('exports values for up to three missed collections, with the age of each source', async () => {
  await agent.metricsJob.runOnce();
  shown = { ageMs: 29 * SECOND_MS, error: 'nvidia-smi did not end within 10000 ms' };
  await clock.advance(29 * SECOND_MS);
  await agent.metricsJob.runOnce();
  const before = (await scrape()).join('\n');
  expect(before).toMatch(/^nvidia_smi_temperature_gpu\{/m);
  await clock.advance(2 * SECOND_MS);
  const after = await scrape();
  expect(after.join('\n')).not.toMatch(/^nvidia_smi_(?:temperature_gpu|gpu_info|mig_info)\{/m);
  expect(after).toEqual(
    expect.arrayContaining([
      'nvidia_smi_last_collect_success 0',
      'nvidia_smi_failed_scrapes_total 1',
      'podwright_agent_collector_age_seconds{collector="gpu"} 31',
    ]),
  );
});

it('exports the age of every source after each collection', async () => {
  await agent.metricsJob.runOnce();
  await clock.advance(10 * SECOND_MS);
  await agent.metricsJob.runOnce();
  await clock.advance(SECOND_MS);
  const ages = (await scrape()).filter((line) => /^podwright_agent_collector_age/.test(line));
  expect(ages.toSorted()).toEqual(
    ['engine', 'gpu', 'host', 'pods'].map(
      (source) => `podwright_agent_collector_age_seconds{collector="${source}"} 1`,
    ),
  );
});

it('exports counters and states with 0 before the first event', async () => {
  await agent.metricsJob.runOnce();
  const [uuid] = await cardUuids();
  expect(await scrape()).toEqual(
    expect.arrayContaining([
      'podwright_agent_auth_failures_total{reason="skew"} 0',
      'podwright_agent_collector_timeouts_total{collector="gpu"} 0',
      'podwright_agent_reconcile_errors_total{reason="engine_away"} 0',
      'podwright_agent_restore_total{result="failed"} 0',
      'podwright_agent_backup_bytes_total{kind="drill"} 0',
      'podwright_agent_pod_launch_duration_seconds_count{stage="pull"} 0',
      `podwright_agent_gpu_lease_state{uuid="${uuid}",state="free"} 1`,
      `podwright_agent_gpu_lease_state{uuid="${uuid}",state="dirty"} 0`,
      `podwright_agent_gpu_cordoned{uuid="${uuid}"} 0`,
    ]),
  );
});

it('exports pods and their use, GPU leases, and finished work', async () => {
  const { id, uuid } = await launch();
  await agent.core.reconcile.runOnce();
  await agent.metricsJob.runOnce();
  agent.metricsJob.noteOom(id);
  await agent.metricsJob.runOnce();
  const lines = await scrape();
  const text = lines.join('\n');
  const of = (name: string) =>
    new RegExp(`^${name}\\{.*pod_id="${id}"\\} (\\S+)$`, 'm').exec(text)?.[1];
  expect(of('container_cpu_usage_seconds_total')).toBe('2.5');
  expect(of('container_memory_working_set_bytes')).toBe('4096');
  expect(of('container_memory_usage_bytes')).toBe('8192');
  expect(of('container_spec_memory_limit_bytes')).toBe(String(2 ** 26));
  expect(of('container_network_transmit_bytes_total')).toBe('20');
  expect(of('container_memory_rss')).toBe('2048');
  expect(of('container_memory_cache')).toBe('6144');
  expect(of('container_fs_reads_bytes_total')).toBe('30');
  expect(of('container_fs_writes_bytes_total')).toBe('40');
  expect(of('container_threads')).toBe('3');
  expect(of('container_oom_events_total')).toBe('1');
  expect(of('container_fs_usage_bytes')).toBeUndefined();
  expect(text).toContain(
    `podwright_agent_pod_info{pod_id="${id}",template="Renter's \\"own\\"\\nback\\\\slash",`,
  );
  expect(lines).toEqual(
    expect.arrayContaining([
      'podwright_agent_pods{phase="running"} 1',
      'podwright_agent_pods{phase="pulling"} 0',
      `podwright_agent_gpu_lease_state{uuid="${uuid}",state="held"} 1`,
      `podwright_agent_gpu_lease{uuid="${uuid}",pod_id="${id}"} 1`,
      'podwright_agent_gpus_simulated 1',
      'podwright_agent_port_pool_size 20',
      'podwright_agent_port_pool_free 19',
      'podwright_agent_pod_launch_duration_seconds_count{stage="create"} 1',
      'podwright_agent_reconcile_duration_seconds_count 1',
      expect.stringMatching(
        /^podwright_agent_docker_request_duration_seconds_count\{op="createContainer",code="ok"\} 1$/,
      ),
      expect.stringMatching(/^podwright_agent_host_memory_total_bytes \d{6,}$/),
    ]),
  );
});

it('names no pod, image or process on the public listener', async () => {
  await again({ separateMonitoring: false });
  const { id } = await launch();
  await agent.metricsJob.runOnce();
  const text = (await scrape()).join('\n');
  expect(text).toMatch(/^podwright_agent_pods\{phase="running"\} 1$/m);
  expect(text).not.toContain(id);
  expect(text).not.toMatch(/registry\.example|container_|compute_app/);
});

it('does not query engine or driver for a scrape', async () => {
  await agent.metricsJob.runOnce();
  let reads = 0;
  engine.hook = async () => {
    reads += 1;
  };
  await scrape();
  expect(reads).toBe(0);
});

it('rejects a scrape above the limit, and one that the scraper has aborted', async () => {
  const server = createHttpServer({
    clock,
    random: systemRandom,
    bodyLimitBytes: 1_000,
    log: createLog({ name: 'test', level: 'silent' }),
  });
  const { promise, resolve } = Promise.withResolvers<string>();
  let begun = 0;
  registerMetricsRoute(server, {
    clock,
    contentType: 'text/plain',
    render() {
      begun += 1;
      return promise;
    },
  });
  const late = server.inject({
    url: '/metrics',
    headers: { 'x-prometheus-scrape-timeout-seconds': '0.5' },
  });
  await eventually('the first scrape', () => begun === 1);
  await clock.advance(600);
  expect((await late).statusCode).toBe(503);
  const scrapes = Array.from({ length: MAX_SCRAPES }, () => server.inject('/metrics'));
  await eventually('the maximum number of scrapes', () => begun === 1 + MAX_SCRAPES);
  const refused = await server.inject('/metrics');
  expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '5']);
  resolve('up 1\n');
  const codes = (await Promise.all(scrapes)).map(({ statusCode }) => statusCode);
  expect(new Set(codes)).toEqual(new Set([200]));
  expect((await server.inject('/metrics')).statusCode).toBe(200);
  await server.close();
});
