/**
 * A real Prometheus with the shipped configuration and alert rules scrapes a real agent with a pod, a central API and a
 * validator, each with its own listener.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import {
  type AgentHome,
  type AgentProcess,
  createAgentHome,
} from '../fakes/agents/agent-process.ts';
import { type FakeGateway, startFakeGateway } from '../fakes/agents/fake-gateway.ts';
import { podSpec } from '../fakes/agents/test-agent.ts';
import { eventually } from '../fakes/eventually.ts';
import { type Prometheus, startPrometheus } from '../fakes/external/prometheus.ts';
import { freePorts } from '../fakes/free-ports.ts';
import { type CentralProcess, startCentralProcess } from '../fakes/scenes/central-process.ts';
import { testSigner } from '../fakes/scenes/market-fixture.ts';
import { startValidatorProcess, type ValidatorProcess } from '../fakes/scenes/validator-process.ts';

const SHIPPED = new URL('../../systemd/prometheus/', import.meta.url).pathname;
const RULES = join(SHIPPED, 'podwright.rules.yml');

const folder = mkdtempSync(join(tmpdir(), 'podwright-central-'));
const podId = systemRandom.uuid();
let home: AgentHome;
let agent: AgentProcess | undefined;
let gateway: FakeGateway;
let central: CentralProcess | undefined;
let validator: ValidatorProcess | undefined;
let prometheus: Prometheus;

beforeAll(async () => {
  const { first, last } = await freePorts(9);
  const [agentPlace = '', centralPlace = '', validatorPlace = ''] = [0, 1, 2].map(
    (index) => `127.0.0.1:${first + index}`,
  );
  home = createAgentHome({
    AGENT_METRICS_LISTEN: agentPlace,
    AGENT_PORT_RANGE: `${first + 3}-${last}`,
    AGENT_GPU: 'simulated',
    AGENT_SIMULATED_GPUS: 'NVIDIA L4*2',
    AGENT_GPU_METRICS: 'both',
  });
  gateway = await startFakeGateway();
  [agent, central] = await Promise.all([
    home.start(),
    startCentralProcess({
      CENTRAL_HOME: folder,
      CENTRAL_GATEWAY_URL: gateway.url,
      CENTRAL_GATEWAY_HOTKEY: testSigner(1).hotkey,
      CENTRAL_METRICS_LISTEN: centralPlace,
    }),
  ]);
  writeFileSync(join(folder, 'validator.seed'), '01'.repeat(32), { mode: 0o600 });
  validator = await startValidatorProcess({
    VALIDATOR_HOME: folder,
    VALIDATOR_SEED_FILE: join(folder, 'validator.seed'),
    VALIDATOR_CENTRAL_URL: `${central.origin}/api`,
    VALIDATOR_CENTRAL_HOTKEY: testSigner(1).hotkey,
    VALIDATOR_METRICS_LISTEN: validatorPlace,
  });
  await agent.client.putPod(podId, {
    ...podSpec({ command: ['sleep', '600'], internal_ports: [] }),
  });
  await central.call('GET', '/executors');
  prometheus = await startPrometheus(
    shippedConfig({ agent: agentPlace, central: centralPlace, validator: validatorPlace }),
  );
  const hasPod = () => prometheus.query(`container_cpu_usage_seconds_total{pod_id="${podId}"}`);
  await eventually('the pod in Prometheus', async () => (await hasPod()).length === 1);
  // Processes take time to start, and each is scraped at its own interval.
  await eventually('all of them in Prometheus', async () => (await figureOf('sum(up)')) === 3);
});

afterAll(async () => {
  await prometheus?.stop();
  await validator?.end();
  await central?.end();
  await gateway?.close();
  rmSync(folder, { recursive: true, force: true });
  await agent?.client.deletePod(podId);
  const isGone = async () => (await agent?.client.getPod(podId))?.phase === 'removed';
  if (agent !== undefined) await eventually('the removal of the pod', isGone);
  await agent?.stop();
  home?.remove();
});

const figureOf = async (expression: string) => {
  const [found] = await prometheus.query(expression);
  return found === undefined ? null : Number(found.value[1]);
};

it('Prometheus scrapes agent, central API and validator', async () => {
  expect(await figureOf('sum(up)')).toBe(3);
  expect(await figureOf('sum(nvidia_smi_memory_total_bytes)')).toBe(2 * 23_034 * 2 ** 20);
  expect(await figureOf('sum(DCGM_FI_DEV_FB_FREE)')).toBe(2 * 23_034);
  expect(await figureOf('podwright_agent_pods{phase="running"}')).toBe(1);
  expect(await figureOf('container_memory_working_set_bytes')).toBeGreaterThan(0);
  expect(await figureOf('podwright_agent_port_pool_size')).toBe(6);
  expect(await figureOf('podwright_agent_pod_launch_duration_seconds_count{stage="start"}')).toBe(
    1,
  );
  const listed = `podwright_central_http_request_duration_seconds_count{route="/api/executors",status="200"}`;
  expect(await figureOf(listed)).toBe(1);
  const passes = () => figureOf('podwright_validator_cycle_seconds_count');
  await eventually('a pass of the validator', async () => ((await passes()) ?? 0) > 0);
  const work = () => figureOf('podwright_central_jobs_due{kind="pod_sync"}');
  // The node may be due between two claims.
  expect(await work()).toBeLessThanOrEqual(1);
});

it("Prometheus joins a GPU's metrics with its name, as dashboards do", async () => {
  const joined = await prometheus.query(
    'nvidia_smi_utilization_gpu_ratio * on (instance, uuid) group_left (name, index) nvidia_smi_gpu_info',
  );
  expect(joined.map(({ metric }) => [metric['index'], metric['name']]).toSorted()).toEqual([
    ['0', 'NVIDIA L4'],
    ['1', 'NVIDIA L4'],
  ]);
});

it('the alert rules use existing metrics', async () => {
  const rules = readFileSync(RULES, 'utf8');
  const names = await prometheus.names();
  const queried = [...rules.matchAll(/^ +expr: (.+)$/gm)].flatMap(([, expr = '']) =>
    metricsIn(expr),
  );
  expect(queried.length).toBeGreaterThan(10);
  expect(queried.filter((name) => !names.has(name))).toEqual([]);
});

/** Returns the shipped configuration with these addresses. */
function shippedConfig(places: { agent: string; central: string; validator: string }): string {
  const jobs = Object.entries(places);
  return jobs.reduce(
    (text, [job, place]) =>
      text.replace(
        new RegExp(`(job_name: podwright-${job}\\n.*targets: )\\[.*?\\]`),
        `$1['${place}']`,
      ),
    readFileSync(join(SHIPPED, 'prometheus.yml'), 'utf8'),
  );
}

/**
 * Names of the metrics in an expression: histograms by base name, without the suffix of their series; without
 * Prometheus's own `up`.
 */
function metricsIn(expression: string): string[] {
  const named = expression.match(/\b(?:nvidia_smi|DCGM|podwright|container)_\w+/g) ?? [];
  return named.map((name) => name.replace(/(_seconds)_(?:bucket|count|sum)$/, '$1'));
}
