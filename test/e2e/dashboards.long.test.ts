/**
 * A real Prometheus scrapes all processes of `npm start` as the README describes, while a renter uses pods. Every query
 * of the shipped dashboards returns data, and no alert fires.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createDockerodeEngine } from '../../agent/containers/engine/dockerode-engine.ts';
import { LABELS } from '../../agent/containers/engine/engine.ts';
import { runSession, shellBlock } from '../docs/sessions.ts';
import { eventually } from '../fakes/eventually.ts';
import { type FakeRegistry, startFakeRegistry } from '../fakes/external/fake-registry.ts';
import { type Prometheus, startPrometheus } from '../fakes/external/prometheus.ts';
import { api } from './api.ts';
import {
  freePortFlags,
  type MarketplaceProcess,
  removeHome,
  startMarketplaceProcess,
  temporaryHome,
} from './marketplace-process.ts';

const DASHBOARDS = new URL('../../systemd/grafana/', import.meta.url).pathname;

const Dashboard = z.object({
  uid: z.string(),
  templating: z.object({
    list: z.array(
      z.object({ name: z.string(), query: z.union([z.string(), z.object({ query: z.string() })]) }),
    ),
  }),
  panels: z.array(
    z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })).min(1) }),
  ),
});

/** Panels without data on a healthy host, and the reason. */
const WITHOUT_DATA: Record<string, string> = {
  'Xids in the last hour': 'the driver reports an Xid only for a fault; its number is a label',
};

const WITHIN_MS = 180_000;
/**
 * Number of evaluations, one per second, to wait for: longer than the 60 s after which an alert reports old samples.
 */
const EVALUATIONS = 90;

const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
const home = temporaryHome();
let market: MarketplaceProcess;
let prometheus: Prometheus;
let registry: FakeRegistry;

beforeAll(async () => {
  registry = await startFakeRegistry();
  market = await startMarketplaceProcess(home, await freePortFlags());
  await runSession([shellBlock('systemd/README.md', 'Metrics')], home);
  const config = readFileSync(join(home, 'prometheus.yml'), 'utf8');
  prometheus = await startPrometheus(config, { isImmediate: true });
  await eventually('four processes', async () => (await figureOf('sum(up)')) === 4);
  await useMarketplace();
  const evaluations = () => figureOf('min(count_over_time(up[10m]))');
  await eventually(
    'evaluations of the rules',
    async () => ((await evaluations()) ?? 0) >= EVALUATIONS,
    WITHIN_MS,
  );
});

afterAll(async () => {
  await prometheus?.stop();
  registry?.setStalling(false);
  const executorIds = market?.demo().executors.map((executor) => executor.id) ?? [];
  await market?.end();
  await registry?.close();
  for (const executor of executorIds) {
    const labels = { [LABELS.executor]: executor };
    for (const { id } of await engine.listContainers(labels)) await engine.removeContainer(id);
    for (const { id } of await engine.listNetworks(labels)) await engine.removeNetwork(id);
    for (const { name } of await engine.listVolumes(labels)) await engine.removeVolume(name);
  }
  removeHome(home);
});

async function figureOf(expression: string): Promise<number | null> {
  const [found] = await prometheus.query(expression);
  return found === undefined ? null : Number(found.value[1]);
}

async function call(method: string, path: string, body?: object) {
  const answer = await api(market.demo(), method, path, body);
  expect([method, path, answer.status, answer.body]).toEqual([method, path, 200, answer.body]);
  return answer.body;
}

async function rent(templateId: string | undefined): Promise<string> {
  const [node] = await eventually('a free node', async () => {
    const free = (await call('GET', '/executors')) as { id: string }[];
    return free.length > 0 && free;
  });
  const body = { pod_name: 'measured', template_id: templateId };
  return ((await call('POST', `/executors/${node?.id}/rent`, body)) as { id: string }).id;
}

/** Rents a pod, follows its log, backs it up, and rents a second pod whose image arrives slowly. */
async function useMarketplace(): Promise<void> {
  const id = await rent(market.demo().templates[0]?.id);
  const isRunning = async () =>
    ((await call('GET', `/pods/${id}`)) as { status: string }).status === 'RUNNING';
  await eventually('the pod', isRunning, WITHIN_MS);
  await followLogs(id, async () => {
    const seen = () => figureOf('podwright_central_http_requests_in_flight > 0');
    await eventually('the open stream', seen, WITHIN_MS);
  });
  expect((await api(market.demo(), 'GET', '/pods/none')).status).toBe(422);
  const { backup_log_id: backup } = (await call('POST', `/pods/${id}/backup`, {})) as {
    backup_log_id: string;
  };
  const isDone = async () =>
    ((await call('GET', `/backup-logs/${backup}`)) as { status: string }).status === 'COMPLETED';
  await eventually('the backup', isDone, WITHIN_MS);
  const counted = () => figureOf('podwright_agent_backup_duration_seconds_count > 0');
  await eventually('the duration of the backup', counted, WITHIN_MS);
  await pullSlowly();
}

async function followLogs(id: string, meanwhile: () => Promise<void>): Promise<void> {
  const reading = new AbortController();
  const response = await fetch(`${market.demo().base_url}/pods/${id}/logs?follow=true&tail=0`, {
    headers: { 'X-API-Key': market.demo().account.api_key },
    signal: systemClock.deadline(WITHIN_MS, reading.signal),
  });
  expect(response.status).toBe(200);
  await meanwhile();
  reading.abort();
}

async function pullSlowly(): Promise<void> {
  // A layer that the engine already has would not be pulled.
  registry.publish('slow', '1', 'dashboards', { layers: [systemRandom.bytes(1_000)] });
  registry.setStalling(true);
  const template = { name: 'slow', docker_image: `${registry.host}/slow`, docker_image_tag: '1' };
  const { id: templateId } = (await call('POST', '/templates', template)) as { id: string };
  const id = await rent(templateId);
  const progress = () => figureOf('podwright_agent_pod_work_progress_ratio + 1');
  await eventually('the progress of the pull', progress, WITHIN_MS);
  await call('DELETE', `/pods/${id}`);
}

/** Returns the values of a dashboard variable, as Grafana lists them. */
async function valuesOf(definition: string): Promise<string[]> {
  const [, selector = '', label = ''] = /^label_values\((.+), (\w+)\)$/.exec(definition) ?? [];
  const series = await prometheus.query(selector);
  return [...new Set(series.map(({ metric }) => metric[label] ?? ''))];
}

/**
 * Formats the selected values as Grafana does for `=~`: escaped, once for the regular expression and once for the
 * string.
 */
function alternatives(values: readonly string[]): string {
  return `(${values.map((value) => value.replace(/[\\^$.*+?()[\]{}|]/g, '\\\\$&')).join('|')})`;
}

const filled = (text: string, values: ReadonlyMap<string, string>) =>
  text.replace(/\$(\w+)/g, (_, name: string) => values.get(name) ?? `$${name}`);

it.each(readdirSync(DASHBOARDS))('every query of the dashboard %s returns data', async (file) => {
  const dashboard = Dashboard.parse(JSON.parse(readFileSync(join(DASHBOARDS, file), 'utf8')));
  expect(`${dashboard.uid}.json`).toBe(file);
  const variables = new Map<string, string>();
  for (const { name, query } of dashboard.templating.list) {
    if (typeof query === 'string') continue;
    const values = await valuesOf(filled(query.query, variables));
    expect([name, values]).not.toEqual([name, []]);
    variables.set(name, alternatives(values));
  }
  const empty: string[] = [];
  for (const { title, targets } of dashboard.panels) {
    for (const { expr } of targets) {
      const query = filled(expr, variables);
      if (!(await prometheus.hasData(query)) && WITHOUT_DATA[title] === undefined)
        empty.push(query);
    }
  }
  expect(empty).toEqual([]);
});

it('no alert was pending or fired, except for a disk that is really full', async () => {
  const { blocks, bfree } = await statfs('/var/lib/docker');
  const free = bfree / blocks;
  const full = [
    ...(free < 0.16 ? ['HostDiskNearlyFull'] : []),
    ...(free < 0.21 ? ['BackupDiskNearlyFull'] : []),
  ];
  const alerts = await prometheus.query('last_over_time(ALERTS[1h])');
  const names = alerts.map(({ metric }) => metric['alertname'] ?? '');
  expect(names.filter((name) => !full.includes(name))).toEqual([]);
});
