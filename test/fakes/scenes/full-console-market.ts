/** The provider's part of the console with one object of each kind. */
import { naiveUtc } from '#shared/runtime/clock.ts';
import { toHex } from '#shared/signing/sr25519.ts';
import { FAILED_CHECK } from '../../fixtures/failed-check.ts';
import { type TestMarket, testSigner } from './market-fixture.ts';

/** Runs a script where a page shows it as markup. */
export const MARKUP = '<img src=x onerror="window.ran=1">';
export const PROVIDER_PASSWORD = 'correct horse battery';

const DAY_MS = 86_400_000;
const FAILED = {
  ...FAILED_CHECK,
  measured: MARKUP,
  required: MARKUP,
  message: MARKUP,
  remediation: MARKUP,
};

/**
 * Adds a node that can be rented by single GPUs, one that fails a check, one with a notice, and a banned provider. The
 * provider gets a password and a token.
 */
export async function fillMarket(market: TestMarket) {
  market.agents.rewards.shares = { rented: 0.02, idle: 0.01, obstacles: [] };
  await setPassword(market);
  const { id: nodeId } = await market.verifiedNode({ gpus: 4, minimum: 1, price: 2.5 });
  const failed = await market.addNode();
  await market.report(failed, { verdict: 'failed', checks: [FAILED] });
  const { id: noticedId } = await market.verifiedNode({ gpus: 2 });
  const token = await market.logIn();
  const send = async (path: string, body: object) => {
    const answer = await market.portal('POST', path, { token, body });
    if (answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
  };
  const start = `${naiveUtc(market.clock.now() + 3 * DAY_MS)}Z`;
  await send(`/executors/${noticedId}/notice-period`, {
    starting_at: start,
    period_in_minute: 30,
    reason: MARKUP,
  });
  await send(`/executors/${nodeId}/location`, { country_code: 'DE', city: MARKUP });
  await send('/auth/tokens', { name: MARKUP });
  const banned = testSigner(9);
  await market.logIn(banned);
  return {
    nodeId,
    failedNodeId: failed.id,
    noticedNodeId: noticedId,
    token,
    banned: banned.hotkey,
  };
}

async function setPassword(market: TestMarket): Promise<void> {
  await market.clock.advance(1_000);
  const message = String(Math.floor(market.clock.now() / 1_000));
  const signature = toHex(market.provider.sign(new TextEncoder().encode(message)));
  await market.logIn();
  const { status, body } = await market.portal('POST', '/auth/set-password', {
    body: {
      miner_hotkey: market.provider.hotkey,
      message,
      signature,
      new_password: PROVIDER_PASSWORD,
    },
  });
  if (status !== 200) throw new Error(JSON.stringify(body));
}
