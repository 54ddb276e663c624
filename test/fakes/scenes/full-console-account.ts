/** The renter's and operator's part of the console with one object of each kind. */

import { fakeLine } from '../agents/fake-log.ts';
import { createFakeSamples } from '../agents/fake-samples.ts';
import type { WebhookReceiver } from '../external/webhook-receiver.ts';
import type { TestAccount } from './central-fixture.ts';
import { MARKUP } from './full-console-market.ts';
import { PUBLIC_KEY, type TestMarket, testSigner } from './market-fixture.ts';
import { payIn } from './wallet.ts';

/** Samples of an agent, of which there is one every 10 seconds. */
const SAMPLES = 12;
const LOG_LINES = 40;
const PAID_UUSD = 500_000_000;

function caller(market: TestMarket, { session }: TestAccount) {
  return async (method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body: object = {}) => {
    const answer = await market.call(method, path, { headers: session, body });
    if (answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
}

/** Creates the account's objects without pods, and bans a provider. */
export async function fillAccount(
  market: TestMarket,
  account: TestAccount,
  receiver: WebhookReceiver,
) {
  const send = caller(market, account);
  const other = await market.signUp();
  await send('PUT', '/users/me', { name: MARKUP, company_name: MARKUP });
  const volume = await send('POST', '/volumes', { name: 'datasets', description: MARKUP });
  const template = await send('POST', '/templates', {
    name: MARKUP,
    description: MARKUP,
    docker_image: 'ubuntu',
    environment: { A: MARKUP },
  });
  const webhook = await send('POST', '/webhooks', {
    url: `${receiver.url}/${encodeURIComponent(MARKUP)}`,
    description: MARKUP,
    events: ['account'],
  });
  await send('PUT', '/users/me/referral-payout-method', { referral_payout_method: 'balance' });
  await market.central.sendWebhooks();
  await send('POST', '/ssh-keys', { name: MARKUP, public_key: PUBLIC_KEY.replace('IJJ/', 'IHdy') });
  await send('POST', '/keys', { name: MARKUP, max_budget_usd: 1 });
  await send('POST', '/secrets', { name: 'token', value: 'x' });
  await send('POST', '/docker-credentials', { docker_username: MARKUP, docker_password: 'x' });
  await send('POST', '/machine-requests', { gpu_class: 'H100', gpu_count: 2, notes: MARKUP });
  // Granted credit cannot be transferred.
  await payIn(market.ports.db, account.id, PAID_UUSD);
  await send('POST', '/users/me/transfer-credits', {
    recipient_email: other.email,
    amount: 2,
    note: MARKUP,
  });
  await send('POST', `/operator/providers/${testSigner(9).hotkey}/ban`, { reason: MARKUP });
  return { volumeId: volume.id, templateId: template.id, webhookId: webhook.id };
}

/** Rents a pod that runs, one that waits for its image and one that is deleted, all on the node. */
export async function fillPods(market: TestMarket, account: TestAccount, nodeId: string) {
  const send = caller(market, account);
  const host = market.agents.host(nodeId);
  const rent = async () => {
    const { status, body } = await market.rent(account, nodeId, { pod_name: MARKUP, gpu_count: 1 });
    if (status !== 200) throw new Error(JSON.stringify(body));
    await settle(market);
    await settle(market);
    return String(body.id);
  };
  const podId = await rent();
  const deletedPodId = await rent();
  await market.clock.advance(120_000);
  await settle(market);
  await market.central.meterPods();
  await send('DELETE', `/pods/${deletedPodId}`);
  await settle(market);
  await market.central.meterPods();
  await send('POST', `/operator/pods/${deletedPodId}/refund`, { reason: MARKUP });
  const waitingPodId = await rent();
  host.change(waitingPodId, { phase: 'backoff', reason: 'ImageRateLimited', message: MARKUP });
  await settle(market);
  host.log.write(
    ...Array.from({ length: LOG_LINES }, (_, at) =>
      fakeLine(at + 1, `\u001b[3${at % 8}m${MARKUP}\n`),
    ),
  );
  await measure(market, nodeId, podId);
  await backUp(market, account, nodeId, podId);
  const report = { reason: 'fewer_gpus', description: MARKUP, consent: true };
  await send('POST', `/pods/${podId}/report`, report);
  return { podId, deletedPodId, waitingPodId };
}

/** Lets the central API and the agents agree on all pods. */
async function settle(market: TestMarket): Promise<void> {
  await market.clock.advance(2_000);
  await market.sync();
}

async function measure(market: TestMarket, nodeId: string, podId: string): Promise<void> {
  const host = market.agents.host(nodeId);
  const samples = createFakeSamples(market.clock);
  host.sampleHistory = samples.answer;
  const gpu = host.specs.get(podId)?.gpu_uuids?.[0] ?? '';
  await samples.run(SAMPLES, (at) => [
    { cpu_percent: at, gpus: { [gpu]: { gpu_percent: at } } },
    { podId, cpu_percent: at, gpus: { [gpu]: { gpu_percent: at } } },
  ]);
  await market.central.collectMetrics();
}

/** Creates a complete backup, a schedule and a restore. */
async function backUp(
  market: TestMarket,
  account: TestAccount,
  nodeId: string,
  podId: string,
): Promise<void> {
  const send = caller(market, account);
  const { operations } = market.agents.host(nodeId);
  const schedule = { backup_frequency_hours: 6, retention_days: 7, backup_path: '/workspace' };
  await send('POST', '/backup-configs', { pod_id: podId, ...schedule });
  const begun = { name: 'datasets', description: MARKUP };
  const { backup_log_id: id } = await send('POST', `/pods/${podId}/backup`, begun);
  await settle(market);
  operations.progress(id, { changed_files: { count: 1, paths: [`/workspace/${MARKUP}`] } });
  operations.finish(id);
  await settle(market);
  await send('POST', `/pods/${podId}/restore`, { backup_id: id, restore_path: '/workspace' });
  await settle(market);
}
