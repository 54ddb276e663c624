/** The market of the scripted day: a renter, a provider with nodes, a validator, and every external service as a fake. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { createOAuthChat } from '../../../validator/central/platform/adapters/oauth-chat.ts';
import { createFakeAgents } from '../../fakes/agents/fake-agents.ts';
import { createFakeBackupStorage } from '../../fakes/external/fake-backup-storage.ts';
import { startOAuthProvider } from '../../fakes/external/oauth-provider.ts';
import { startWebhookReceiver } from '../../fakes/external/webhook-receiver.ts';
import { createManualClock } from '../../fakes/manual-clock.ts';
import { createTestMarket, PUBLIC_KEY } from '../../fakes/scenes/market-fixture.ts';
import { signedDigest } from '../../fixtures/update-manifest.ts';
import { ResponseDocument } from '../response-fields.ts';
import { createRecorder } from './recorder.ts';

const RATES = [
  { netuid: 51, name: 'lium', symbol: 'SN51', rate_usd: 3, is_default: true },
  { netuid: 4, name: 'targon', symbol: 'SN4', rate_usd: 0.25, is_default: false },
];
const SYNCS = 3;
const SYNC_PAUSE_MS = 2_000;

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
  agents.signedDigest = async () => signedDigest();
  agents.rewards.shares = { rented: 0.4, idle: 0.1, obstacles: [] };
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
    // Enough for every rental of the day, and for transfers at once.
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
    async close(): Promise<void> {
      await market.close();
      await chat.close();
      await receiver.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
