/**
 * The console with one object of each kind, for tests that open every page. All texts that users, agents and validators
 * write are markup, which runs a script if a page shows it as markup.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createGatewayAgents } from '../../../validator/central/platform/adapters/gateway-agents.ts';
import { startBrowser } from '../../fixtures/browser.ts';
import { buildConsoleIn } from '../../fixtures/built-console.ts';
import { startEchoTerminals } from '../agents/echo-terminals.ts';
import { createFakeBackupStorage } from '../external/fake-backup-storage.ts';
import { installFakeClock } from '../external/fake-test-clock.ts';
import { startWebhookReceiver } from '../external/webhook-receiver.ts';
import { createManualClock } from '../manual-clock.ts';
import { letTimePass } from '../passing-time.ts';
import { fillAccount, fillPods } from './full-console-account.ts';
import { fillMarket } from './full-console-market.ts';
import { testSigner } from './market-fixture.ts';
import { createValidatorScene } from './validator-scene.ts';

const LISTEN = { host: '127.0.0.1', port: 0 };
/** Cycles of the validator: the second epoch ends with the fourth. */
const CYCLES = 4;
/** Less than a pod costs, so that the account also spends paid money, which can be refunded. */
const CREDIT_UUSD = 10_000;

export type FullConsoleScene = Awaited<ReturnType<typeof createFullConsoleScene>>;

/** Starts the scene; once per test file. Its time passes. The caller must call `close()`. */
export async function createFullConsoleScene() {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-console-'));
  const storage = createFakeBackupStorage();
  const receiver = await startWebhookReceiver();
  const terminals = await startEchoTerminals();
  const [scene, browser] = await Promise.all([
    createValidatorScene({
      overrides: {
        consoleFolder: folder,
        clock: createManualClock(systemClock.now()),
        backupStorage: storage,
        pruneBackups: storage.prune,
        payments: 'simulated',
        webhookTargets: 'loopback',
        signupCreditUusd: CREDIT_UUSD,
        topUpWaitMs: 0,
        installLocal: installFakeClock,
      },
    }),
    startBrowser(),
    buildConsoleIn(folder),
  ]);
  const { market } = scene;
  market.agents.terminalOf = terminals.open;
  await recordCycles(scene);
  const account = await market.renter();
  await market.setOperator(account);
  const nodes = await fillMarket(market);
  const owned = await fillAccount(market, account, receiver);
  const pods = await fillPods(market, account, nodes.nodeId);
  const evidence = await scene.store.selectFrom('evidence').select('id').executeTakeFirstOrThrow();
  const stopTime = letTimePass(market.clock);
  return {
    market,
    browser,
    origin: new URL(scene.centralUrl).origin,
    /** A renter with the role of an operator. */
    account,
    /** Sessions of the account and of the provider, as options of `openPage`. */
    sessions: {
      session: { token: account.token, name: account.email },
      portalSession: { token: nodes.token, name: market.provider.hotkey },
    },
    /** Ids that addresses of pages contain. */
    ids: {
      ...owned,
      ...pods,
      ...nodes,
      accountId: account.id,
      checkedNodeId: scene.node.id,
      evidenceId: evidence.id,
    },
    async close(): Promise<void> {
      stopTime();
      await browser.close();
      await scene.close();
      await receiver.close();
      await terminals.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Lets the validator check its node, and the central API relay the validator's records. */
async function recordCycles(
  scene: Awaited<ReturnType<typeof createValidatorScene>>,
): Promise<void> {
  const { market, validator } = scene;
  const { record } = createGatewayAgents({
    gatewayUrl: await validator.server.listen(LISTEN),
    gatewayHotkey: market.validator.hotkey,
    signer: testSigner(5),
    clock: market.clock,
    random: systemRandom,
  });
  market.agents.record = record;
  for (let cycle = 0; cycle < CYCLES; cycle += 1) await scene.cycle();
}
