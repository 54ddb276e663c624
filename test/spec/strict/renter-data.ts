/** The renter's day, third part: volumes, backups and webhooks. */
import { z } from 'zod';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { DEFAULT_TEMPLATE } from '../../fakes/scenes/market-fixture.ts';
import type { DayScene } from './day-scene.ts';
import * as own from './own.ts';
import * as pods from './pods.ts';
import type { Renter } from './renter-account.ts';
import type { Nodes } from './renter-market.ts';
import * as resources from './resources.ts';
import { AnyObject } from './types.ts';

const WEEK_MS = 7 * 86_400_000;

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
      pod_name: 'with volume',
      template_id: DEFAULT_TEMPLATE,
      gpu_count: 1,
      volume_id: made.id,
    },
  });
  await scene.settle();
  for (const q of ['data', 'with volume', 'podwright', second]) {
    await call('GET /users/me/search', own.SearchResults, { headers, query: { q } });
  }
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

/** Backs up the pod, verifies and restores the backup, and cancels the operations that still run. */
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
  const changed = { count: 2, paths: ['/workspace/log', '/workspace/db'] };
  operations.progress(backup, { changed_files: changed });
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
    body: { url: receiver.url, description: 'mine', events: ['account'] },
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
