/** Accounts besides the demo account, in the marketplace that `npm start` runs. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { postGroup } from '../../validator/central/money/ledger/ledger.service.ts';
import {
  debitPaid,
  fundsReduced,
  settleFirst,
} from '../../validator/central/money/metering/settlement.service.ts';
import { openCentralDatabase } from '../../validator/central/platform/database/database.ts';
import { testCause } from '../fakes/scenes/wallet.ts';
import { type ApiAnswer, api } from './api.ts';
import type { MarketplaceProcess } from './marketplace-process.ts';

export type Newcomer = {
  email: string;
  call(method: string, path: string, body?: object): Promise<ApiAnswer>;
};

/** Signs up and confirms the address with the mail in this host's outbox. */
export async function signUp(market: MarketplaceProcess, email: string): Promise<Newcomer> {
  const demo = market.demo();
  const { body } = await api(demo, 'POST', '/users', { email, password: 'correct horse' });
  const { api_key: key } = body as { api_key: string };
  const { body: outbox } = await api(demo, 'GET', '/_local/outbox');
  const mails = (outbox as { to: string; text: string }[]).filter(({ to }) => to === email);
  const tokens = mails.flatMap(({ text }) => /^[A-Za-z0-9_-]{43}$/m.exec(text) ?? []);
  // Links for an earlier account with the same address are invalid.
  const answers = await Promise.all(
    tokens.map((token) => api(demo, 'POST', '/auth/verify-email', { token })),
  );
  expect(answers.some(({ status }) => status === 200)).toBe(true);
  return {
    email,
    call: (method, path, sent) => api(demo, method, path, sent, { 'X-API-Key': key }),
  };
}

/** Signs up without the sign-up credit, which is granted once per address. */
export async function signUpWithNothing(
  market: MarketplaceProcess,
  email: string,
): Promise<Newcomer> {
  await signUp(market, email);
  const demo = market.demo();
  const login = await api(demo, 'POST', '/users/login', { email, password: 'correct horse' });
  const { token } = login.body as { token: string };
  const response = await fetch(`${demo.base_url}/users/me`, {
    method: 'DELETE',
    headers: { Authorization: `Bearer ${token}` },
  });
  expect(response.status).toBe(200);
  return signUp(market, email);
}

/** Reports a chargeback as a payment processor does: the account loses that amount, so its pods stop earlier. */
export async function payBack(
  market: MarketplaceProcess,
  renter: Newcomer,
  amountUusd: number,
): Promise<void> {
  const { body } = await renter.call('GET', '/users/me');
  const { id } = body as { id: string };
  const db = await openCentralDatabase(join(market.home, 'central.db'));
  try {
    await db.transaction().execute(async (tx) => {
      const nowMs = systemClock.now();
      const settled = await settleFirst(tx, id, nowMs);
      const leg = debitPaid(settled, amountUusd, 'external:topup');
      await postGroup(tx, [leg], testCause({ atMs: nowMs }));
      await fundsReduced(tx, settled, nowMs);
    });
  } finally {
    await db.destroy();
  }
}

/** Records that a payment has arrived, with the operator's command from the README. */
export function payIn(market: MarketplaceProcess, { email }: Newcomer, usd: number): void {
  const main = new URL('../../validator/main.ts', import.meta.url).pathname;
  const words = ['ledger', 'pay-in', email, String(usd), 'a-bank-transfer'];
  const database = ['--database', join(market.home, 'central.db')];
  execFileSync(process.execPath, [main, ...words, ...database]);
}
