/** The renter's day, second part: nodes, machine requests, rentals and pods. */
import { z } from 'zod';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { DEFAULT_TEMPLATE } from '../../fakes/scenes/market-fixture.ts';
import type { DayScene } from './day-scene.ts';
import * as nodes from './nodes.ts';
import * as own from './own.ts';
import * as pods from './pods.ts';
import type { Renter } from './renter-account.ts';
import * as resources from './resources.ts';
import { AnyObject } from './types.ts';

const WEEK_MS = 7 * 86_400_000;
const OTHER_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHdwkGkXIuGXqXyJmJfdTwJ7TeIn1BQbnXr0rE9EzBEC other@here';

/** Nodes of the day: both have two GPUs and can be split. */
export type Nodes = { first: string; second: string };

export async function searchNodes(
  { api }: DayScene,
  { key: headers }: Renter,
  { first }: Nodes,
): Promise<void> {
  const { call } = api;
  const params = { executor_uuid: first };
  await call('GET /executors', z.array(nodes.NodeRow).min(2));
  await call('GET /executors', z.array(nodes.NodeRow), { headers, query: { size: 1000 } });
  await call('GET /executors', z.array(nodes.NodeSummary), { query: { view: 'summary' } });
  for (const price_lte of [1_000, 0.01]) {
    const query = { explain: 'true', price_lte };
    await call('GET /executors', nodes.ExplainedNodes, { query });
  }
  await call('GET /executors/count', z.object({ count: z.int() }));
  await call('GET /executors/total-count', z.object({ total_count: z.int() }));
  await call('GET /executors/stats', z.array(nodes.Stats));
  await call('GET /executors/default-docker-image', z.array(nodes.DefaultImage), {
    query: { gpu_model: 'H100' },
  });
  await call('GET /executors/deployment-estimate', nodes.DeploymentEstimate, {
    headers,
    query: { executor_id: first, template_id: DEFAULT_TEMPLATE },
  });
  await call('GET /executors/{executor_uuid}', nodes.NodeRow, { headers, params });
  await call('GET /executors/{executor_uuid}/rentability', nodes.Rentability, { params });
  await call('GET /executors/{executor_uuid}/hardware-utilization', nodes.Hardware, { params });
  await call('GET /executors/{executor_uuid}/reliability', AnyObject, { params });
  await call('GET /machines', z.array(nodes.Machine));
  await call('GET /machines/capacity', z.array(nodes.Capacity));
  for (const path of ['/bookmark', '/bookmarks']) {
    const body = { executor_id: first };
    await call(`POST ${path}`, resources.Bookmarked, { headers, body });
    await call(`GET ${path}`, z.array(resources.Bookmark).length(1), { headers });
    await call(`DELETE ${path}/{executor_id}`, resources.Bookmarked, { headers, params: body });
  }
}

/** Returns the ids of two open requests, for the provider. */
export async function requestMachines(
  { api }: DayScene,
  { key: headers }: Renter,
): Promise<string[]> {
  const { call } = api;
  const post = (body: object) =>
    call('POST /machine-requests', resources.MachineRequest, { headers, body });
  const bare = await post({ gpu_class: 'H100' });
  const whole = { gpu_class: 'H100', gpu_count: 2, hourly_budget: 9, country: 'FR', notes: 'soon' };
  const full = await post({ ...whole, country: undefined, min_vram_gb: 40 });
  const cancelled = await post(whole);
  const at = { headers, params: { id: cancelled.id } };
  await call('GET /machine-requests', z.array(resources.MachineRequest), { headers });
  await call('GET /machine-requests/{id}', resources.MachineRequest, at);
  await call('DELETE /machine-requests/{id}', resources.MachineRequest, at);
  return [bare.id, full.id];
}

/** Rents, changes and uses a pod. Returns its id. */
export async function usePod(scene: DayScene, renter: Renter, { first }: Nodes): Promise<string> {
  const { call } = scene.api;
  const { key: headers } = renter;
  const body = {
    pod_name: 'first',
    template_id: DEFAULT_TEMPLATE,
    dockerfile_content: null,
    volume_id: null,
    user_public_key: [OTHER_KEY],
    initial_port_count: null,
    gpu_count: 1,
  };
  const host = scene.market.agents.host(first);
  host.arrives = 'pulling';
  const rented = await call('POST /executors/{executor_uuid}/rent', pods.Rental, {
    headers,
    params: { executor_uuid: first },
    body,
  });
  const at = { headers, params: { id: rented.id } };
  await call('GET /pods', z.array(pods.PodRow).length(1), { headers });
  await call('GET /pods/{id}', pods.PodDetail, at);
  await scene.market.sync();
  const waits = {
    phase: 'backoff',
    reason: 'ImageRateLimited',
    message: 'too many pulls',
  } as const;
  host.change(rented.id, waits);
  await scene.market.sync();
  await call('GET /pods/{id}', pods.PodDetail, at);
  host.change(rented.id, { phase: 'running', reason: null, message: '' });
  host.arrives = 'running';
  await scene.settle();
  const running = await call('GET /pods/{id}', pods.PodDetail, at);
  if (running.status !== 'RUNNING') throw new Error(`the pod is ${running.status}`);
  await scene.measure(first, rented.id);
  await readPod(scene, renter, rented.id);
  await changePod(scene, renter, rented.id);
  return rented.id;
}

async function readPod(scene: DayScene, renter: Renter, id: string): Promise<void> {
  const { call } = scene.api;
  const { key: headers } = renter;
  const at = { headers, params: { id } };
  await scene.market.clock.advance(60_000);
  await scene.market.central.meterPods();
  await call('GET /pods', z.array(pods.PodRow).length(1), { headers });
  await call('GET /pods/{id}/events', z.array(pods.Event).min(1), at);
  await call('GET /users/me/events', z.array(pods.Event).min(1), { headers });
  await call('GET /pods/{id}/statement', pods.Statement, at);
  await call('GET /pods/{pod_id}/gpu-utilization', nodes.GpuUtilization, {
    params: { pod_id: id },
  });
  await call('GET /pods/{id}/metrics', AnyObject, { ...at, query: { per_gpu: 'true' } });
  await call('POST /pods/{id}/stream-ticket', own.StreamTicket, at);
  await call('POST /pods/{pod_id}/feedback', pods.Feedback, {
    headers,
    params: { pod_id: id },
    body: { rating: 5 },
  });
  const report = { reason: 'fewer_gpus', description: 'nvidia-smi shows one card', consent: true };
  await call('POST /pods/{id}/report', pods.PodReport, { ...at, body: report });
  await call('POST /pods/{id}/chat-channel', pods.ChatChannel, {
    ...at,
    body: { message: 'nvidia-smi hangs' },
  });
}

async function changePod(scene: DayScene, { key: headers }: Renter, id: string): Promise<void> {
  const { call } = scene.api;
  const at = { headers, params: { id } };
  await call('PATCH /pods/{id}', pods.PodRow, { ...at, body: { max_spend_usd: 100 } });
  await call('POST /pods/{id}/like', pods.PodRow, at);
  const removal = `${naiveUtc(scene.market.clock.now() + WEEK_MS)}Z`;
  const body = { removal_scheduled_at: removal };
  await call('POST /pods/{id}/schedule-removal', pods.PodRow, { ...at, body });
  await call('DELETE /pods/{id}/schedule-removal', pods.PodRow, at);
  await call('POST /pods/{id}/multiple-ssh-keys', pods.PodWithKeys, {
    ...at,
    body: { public_keys: [OTHER_KEY] },
  });
  await call('POST /pods/{id}/install-jupyter', pods.PodRow, {
    ...at,
    body: { jupyter_internal_port: 8000 },
  });
  await scene.settle();
  await call('PUT /pods/{id}', resources.Template, { ...at, body: { environment: { A: '1' } } });
  await scene.settle();
  await call('PUT /pods/{id}/switch-template', pods.PodRow, {
    ...at,
    body: { template_id: DEFAULT_TEMPLATE },
  });
  await scene.settle();
  await call('POST /pods/{id}/reboot', pods.PodRow, { ...at, body: {} });
  await scene.settle();
  const { executor_id: node } = await call('GET /pods/{id}', pods.PodDetail, at);
  scene.market.agents.host(node).change(id, { phase: 'running', reboots_done: 1 });
  await scene.settle();
}

/** Rents by specification, and ends everything. */
export async function endPods(scene: DayScene, { key: headers }: Renter): Promise<void> {
  const { call } = scene.api;
  const spec = { pod_name: 'by spec', gpu_type: 'H100', gpu_count: 1 };
  await call('POST /executors/rent-by-spec', pods.RentalBySpec, {
    headers,
    body: { ...spec, template_id: DEFAULT_TEMPLATE, dry_run: true },
  });
  await call('POST /executors/rent-by-spec', pods.RentalBySpec, {
    headers,
    body: { ...spec, dockerfile_content: 'FROM ubuntu\nRUN true\n', explain: true },
  });
  await scene.settle();
  const rows = await call('GET /pods', z.array(pods.PodRow), { headers });
  for (const { id } of rows) {
    await call('DELETE /pods/{id}', pods.DeletedPod, { headers, params: { id } });
  }
  await scene.settle();
  await call('GET /pods', z.array(pods.PodRow).length(0), { headers });
  await call('GET /pods/history', pods.PodHistory, { headers });
  for (const { id } of rows) {
    const at = { headers, params: { id } };
    await call('GET /pods/{id}', pods.Tombstone, { ...at, query: { include_deleted: 'true' } });
    await call('GET /pods/{id}/events', z.array(pods.Event).min(1), at);
    await call('GET /pods/{id}/statement', pods.Statement, at);
  }
  await call('GET /users/me/events', z.array(pods.Event).min(1), { headers });
}

/** Reads the outcome of the report. */
export async function readReports(scene: DayScene, { key: headers }: Renter): Promise<void> {
  const path = 'GET /pod-reports';
  const [report] = await scene.api.call(path, z.array(pods.PodReport).length(1), { headers });
  if (report?.status !== 'confirmed') throw new Error(`the report is ${report?.status}`);
}
