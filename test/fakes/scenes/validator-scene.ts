/**
 * A validator on a manual clock with a real central API over HTTP, one node with an agent, and an evidence store in a
 * file.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHttpServer } from '#shared/http/server.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createValidator } from '../../../validator/app.ts';
import { readCheckPolicy } from '../../../validator/checks/check-policy.ts';
import { openEvidenceStore } from '../../../validator/store/evidence-store.ts';
import { localMetagraph } from '../../../validator/weights/metagraph.ts';
import { goldenPolicy } from '../../fixtures/cycle-set.ts';
import { testInventory } from '../../fixtures/host-inventory.ts';
import { enrolAgent } from '../agents/enrolled-agent.ts';
import { createTestMarket, type TestMarketOverrides, testSigner } from './market-fixture.ts';

export const CYCLE_MS = 60_000;
export const EPOCH_MS = 120_000;

const log = createLog({ name: 'test', level: 'silent' });
const LISTEN = { host: '127.0.0.1', port: 0 };

export type ValidatorScene = Awaited<ReturnType<typeof createValidatorScene>>;

export type ValidatorSceneOptions = { embedded?: boolean; overrides?: TestMarketOverrides };

/** Creates the scene. With `embedded`, simulated GPUs pass checks and score. The caller must call `close()`. */
export async function createValidatorScene({
  embedded = true,
  overrides = {},
}: ValidatorSceneOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-ledger-'));
  const storeFile = join(folder, 'ledger.db');
  const market = await createTestMarket(overrides);
  const { clock, validator: signer } = market;
  const node = await market.addNode({ gpus: 2 });
  let isSound = true;
  const agent = createHttpServer({ log, clock, random: systemRandom, bodyLimitBytes: 100_000 });
  enrolAgent(agent, node.id, market.provider);
  agent.get('/v1/inventory', async () => testInventory(node.id, { collectedMs: clock.now() }));
  agent.get('/v1/pods', async () => ({ pods: [] }));
  agent.post('/v1/verify', async () => ({
    ok: isSound,
    reason_code: isSound ? null : 'CONTAINER_START_FAILED',
    steps: [],
    simulated: true,
  }));
  const agentPort = Number(new URL(await agent.listen(LISTEN)).port);
  await market.ports.db.updateTable('executors').set({ port: agentPort }).execute();
  const origin = await market.server.listen(LISTEN);
  const store = await openEvidenceStore(storeFile);
  const validator = createValidator({
    clock,
    random: systemRandom,
    log,
    signer,
    store,
    centralUrl: `${origin}/api`,
    centralHotkey: testSigner(5).hotkey,
    policy: { acceptSimulated: embedded, checks: readCheckPolicy() },
    proof: null,
    weightSettings: {
      policy: goldenPolicy(),
      metagraph: localMetagraph(store, signer.hotkey),
      embedded,
      cycleMs: CYCLE_MS,
      epochMs: EPOCH_MS,
      retentionDays: 14,
      verdictDays: null,
    },
    checkIntervalMs: CYCLE_MS,
    agentTls: 'off',
    listIntervalMs: CYCLE_MS,
  });

  return {
    market,
    node,
    store,
    storeFile,
    centralUrl: `${origin}/api`,
    validator,
    /** Sets whether the node's probe containers run. */
    setSound(value: boolean): void {
      isSound = value;
    },
    /** Runs one check of the node and waits until the cycle has ended. */
    async cycle(): Promise<void> {
      await validator.runOnce();
      await clock.advance(CYCLE_MS + 5_000);
      await validator.runOnce();
    },
    async close(): Promise<void> {
      await validator.close();
      await store.destroy();
      await agent.close();
      await market.close();
      rmSync(folder, { recursive: true });
    },
  };
}
