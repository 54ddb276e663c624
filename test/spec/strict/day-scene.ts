/**
 * The market of the scripted day: a renter, a provider with nodes, a validator, and every external service as a fake.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { createOAuthChat } from '../../../validator/central/platform/adapters/oauth-chat.ts';
import { createFakeAgents } from '../../fakes/agents/fake-agents.ts';
import { createFakeSamples } from '../../fakes/agents/fake-samples.ts';
import { createFakeBackupStorage } from '../../fakes/external/fake-backup-storage.ts';
import { startOAuthProvider } from '../../fakes/external/oauth-provider.ts';
import { startWebhookReceiver } from '../../fakes/external/webhook-receiver.ts';
import { createManualClock } from '../../fakes/manual-clock.ts';
import { createTestMarket, PUBLIC_KEY } from '../../fakes/scenes/market-fixture.ts';
import { recovery } from '../../fixtures/root-key-set.ts';
import { signedDigest } from '../../fixtures/update-manifest.ts';
import { ResponseDocument } from '../response-fields.ts';
import { createRecorder } from './recorder.ts';

const RATES = [
  { netuid: 51, name: 'lium', symbol: 'SN51', rate_usd: 3, is_default: true },
  { netuid: 4, name: 'targon', symbol: 'SN4', rate_usd: 0.25, is_default: false },
];
const SYNCS = 3;
const SYNC_PAUSE_MS = 2_000;
/** Samples of a minute. */
const SAMPLES = 6;

export { PUBLIC_KEY };
export type DayScene = Awaited<ReturnType<typeof createDayScene>>;

/** The caller must call `close()`. */
export async function createDayScene() {
  const chat = await startOAuthProvider();
  const receiver = await startWebhookReceiver();
  const folder = mkdtempSync(join(tmpdir(), 'podwright-day-'));
  const storage = createFakeBackupStorage();
  // Webhooks are sent with real timestamps.
  const clock = createManualClock(systemClock.now());
  const agents = createFakeAgents();
  agents.signedDigest = async () => ({ ...signedDigest(), keySets: [recovery()] });
  agents.rewards.shares = { rented: 0.4, idle: 0.1, obstacles: ['collateral'] };
  const market = await createTestMarket({
    agents,
    clock,
    chat: createOAuthChat(chat.options, systemClock),
    objects: { folder },
    backupStorage: storage,
    pruneBackups: storage.prune,
    payments: 'simulated',
    payoutProcessor: 'simulated',
    alphaRates: { subnets: async () => RATES },
    webhookTargets: 'loopback',
    supportEmail: 'support@market.example',
    // New accounts get a credit that covers every rental of the day and can be transferred at once.
    verifyEmailAtSignup: false,
    signupCreditUusd: 1_000_000_000,
    topUpWaitMs: 0,
  });
  const documentAt = async (url: string) =>
    ResponseDocument.parse((await market.server.inject({ method: 'GET', url })).json());
  const api = createRecorder(market.server, {
    prefix: '/api',
    document: await documentAt('/api/openapi.json'),
  });
  const portal = createRecorder(market.server, {
    prefix: '/portal',
    document: await documentAt('/portal/openapi.json'),
  });

  return {
    market,
    chat,
    receiver,
    api,
    portal,
    /** Lets the central API and the agents agree on all pods. */
    async settle(): Promise<void> {
      for (let pass = 0; pass < SYNCS; pass += 1) {
        await market.clock.advance(SYNC_PAUSE_MS);
        await market.sync();
      }
    },
    /** Lets the agent of a node report a minute of work of a pod on all GPUs that the pod has. */
    async measure(nodeId: string, podId: string): Promise<void> {
      const host = agents.host(nodeId);
      const { gpu_uuids: uuids = [] } = host.specs.get(podId) ?? {};
      const gpus = host.inventory.gpu.devices.filter(({ uuid }) => uuids.includes(uuid));
      host.podMetrics.set(podId, {
        age_ms: 2_000,
        simulated: true,
        interval_seconds: 10,
        idle_ms: null,
        cpu: { used_cores: 1, limit_cores: 2 },
        memory: { used_bytes: 1, limit_bytes: 2 },
        gpus: gpus.map((gpu) => ({ ...gpu, utilization_percent: 60, processes: 1 })),
        history: [{ age_ms: 2_000, gpu_percent: 60, gpu_memory_percent: 5 }],
      });
      const samples = createFakeSamples(clock);
      host.sampleHistory = samples.answer;
      const load = Object.fromEntries(uuids.map((uuid) => [uuid, { gpu_percent: 60 }]));
      await samples.run(SAMPLES, () => [
        { cpu_percent: 50, gpus: load },
        { podId, cpu_percent: 60, gpus: load },
      ]);
      await market.central.collectMetrics();
    },
    async close(): Promise<void> {
      await market.close();
      await chat.close();
      await receiver.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
