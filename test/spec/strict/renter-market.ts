/** The renter's day, second part: nodes, volumes, rentals, pods, backups and webhooks. */
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
    ...{ pod_name: 'first', template_id: DEFAULT_TEMPLATE, dockerfile_content: null },
    ...{ volume_id: null, user_public_key: [OTHER_KEY], initial_port_count: null },
    gpu_count: 1,
  };
  const rented = await call('POST /executors/{executor_uuid}/rent', pods.Rental, {
    headers,
    params: { executor_uuid: first },
    body,
  });
  const at = { headers, params: { id: rented.id } };
  await call('GET /pods', z.array(pods.PodRow).length(1), { headers });
  await call('GET /pods/{id}', pods.PodDetail, at);
  await scene.settle();
  const running = await call('GET /pods/{id}', pods.PodDetail, at);
  if (running.status !== 'RUNNING') throw new Error(`the pod is ${running.status}`);
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
  await call('GET /pods/{id}/metrics', AnyObject, at);
  await call('POST /pods/{id}/stream-ticket', own.StreamTicket, at);
  await call('POST /pods/{pod_id}/feedback', pods.Feedback, {
    headers,
    params: { pod_id: id },
    body: { rating: 5 },
  });
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

/** Creates a volume, rents with it, abandons its unsaved data and deletes it. */
export async function useVolumes(
  scene: DayScene,
  { key: headers }: Renter,
  { second }: Nodes,
): Promise<void> {
  const { call } = scene.api;
  const made = await call('POST /volumes', resources.Volume, { headers, body: { name: 'data' } });
  const at = { headers, params: { id: made.id } };
  await call('GET /volumes', z.array(resources.Volume), { headers });
  await call('GET /volumes/{id}', resources.Volume, at);
  await call('PUT /volumes/{id}', resources.Volume, { ...at, body: { description: 'words' } });
  const { body: rented } = await scene.market.call('POST', `/executors/${second}/rent`, {
    headers,
    body: {
      ...{ pod_name: 'with volume', template_id: DEFAULT_TEMPLATE },
      ...{ gpu_count: 1, volume_id: made.id },
    },
  });
  await scene.settle();
  await call('GET /pods/{id}', pods.PodDetail, { headers, params: { id: rented.id } });
  await call('GET /volumes/{volume_id}/current-stats', resources.VolumeStats, {
    headers,
    params: { volume_id: made.id },
  });
  scene.market.agents.host(second).up = false;
  await call('DELETE /executors/{executor_uuid}/rent', pods.DeletedPod, {
    headers,
    params: { executor_uuid: second },
  });
  await call('POST /volumes/{id}/release', resources.Volume, at);
  scene.market.agents.host(second).up = true;
  await scene.settle();
  await call('DELETE /volumes/{id}', resources.Volume, at);
}

/** Backs up the pod, verifies and restores the backup, and cancels what still runs. */
export async function backUp(
  scene: DayScene,
  { key: headers }: Renter,
  { first }: Nodes,
  podId: string,
): Promise<void> {
  const { call } = scene.api;
  const { operations } = scene.market.agents.host(first);
  const ofPod = { headers, params: { pod_id: podId } };
  const schedule = { backup_frequency_hours: 6, retention_days: 7, backup_path: '/workspace' };
  await call('GET /backup-configs/pod/{pod_id}', pods.BackupConfig.nullable(), ofPod);
  const config = await call('POST /backup-configs', pods.BackupConfig, {
    headers,
    body: { pod_executor_id: first, ...schedule },
  });
  await call('GET /backup-configs/pod/{pod_id}', pods.BackupConfig.nullable(), ofPod);
  await call('GET /backup-configs', z.array(pods.BackupConfig).length(1), { headers });
  const begin = async () => {
    const { backup_log_id: id } = await call(
      'POST /pods/{pod_id}/backup',
      resources.BackupTriggered,
      { ...ofPod, body: {} },
    );
    await scene.settle();
    return id;
  };
  const backup = await begin();
  operations.finish(backup);
  await scene.settle();
  const at = { headers, params: { id: backup } };
  await call('GET /backup-logs', resources.BackupLogs, { headers });
  await call('GET /backup-logs/pod/{pod_id}', resources.BackupLogs, ofPod);
  await call('GET /backup-logs/{id}', resources.BackupLog, at);
  await call('POST /backup-logs/{id}/verify', resources.BackupLog, at);
  await scene.settle();
  const drill = operations.calls.findLast((text) => text.startsWith('verify ')) ?? '';
  operations.finish(drill.slice('verify '.length));
  await scene.settle();
  await restore(scene, headers, podId, backup);
  const second = await begin();
  const atSecond = { headers, params: { id: second } };
  await call('POST /backup-logs/{id}/cancel', resources.BackupLog, atSecond);
  await scene.settle();
  await call('DELETE /backup-logs/{id}', resources.BackupLog, at);
  await call('DELETE /backup-configs/{id}', pods.BackupConfig, {
    headers,
    params: { id: config.id },
  });
}

async function restore(
  scene: DayScene,
  headers: Record<string, string>,
  podId: string,
  backupId: string,
): Promise<void> {
  const { call } = scene.api;
  const params = { pod_uuid: podId };
  const begun = await call('POST /pods/{pod_uuid}/restore', resources.RestoreTriggered, {
    headers,
    params,
    body: { backup_id: backupId, restore_path: '/workspace' },
  });
  await scene.settle();
  await call('GET /pods/{pod_uuid}/restore-logs', resources.RestoreLogs, { headers, params });
  await call('POST /restore-logs/{id}/cancel', resources.RestoreLog, {
    headers,
    params: { id: begun.restore_log_id },
  });
  await scene.settle();
}

/** Registers a webhook, receives events and sends them again. */
export async function useWebhooks(scene: DayScene, { key: headers }: Renter): Promise<void> {
  const { api, market, receiver } = scene;
  const { call } = api;
  const made = await call('POST /webhooks', own.NewWebhook, {
    headers,
    body: { url: receiver.url, description: 'mine' },
  });
  const at = { headers, params: { id: made.id } };
  const event = { headers, body: { referral_payout_method: 'balance' } };
  await market.call('PUT', '/users/me/referral-payout-method', event);
  await market.central.sendWebhooks();
  await call('GET /webhooks', z.array(own.Webhook).length(1), { headers });
  await call('GET /webhooks/{id}', own.Webhook, at);
  await call('PATCH /webhooks/{id}', own.Webhook, { ...at, body: { description: 'ours' } });
  const sent = await call('GET /webhooks/{id}/deliveries', z.array(own.Delivery), at);
  const [delivery] = sent;
  if (delivery === undefined) throw new Error('the webhook received nothing');
  await call('POST /webhooks/{id}/deliveries/{delivery_id}/replay', AnyObject, {
    headers,
    params: { id: made.id, delivery_id: delivery.id },
  });
  const since = `${naiveUtc(market.clock.now() - WEEK_MS)}Z`;
  await call('POST /webhooks/{id}/replay', AnyObject, { ...at, body: { since } });
  await call('POST /webhooks/{id}/rotate-secret', own.NewWebhook, at);
  await call('DELETE /webhooks/{id}', own.Webhook, at);
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
    body: { ...spec, dockerfile_content: 'FROM ubuntu\nRUN true\n' },
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
