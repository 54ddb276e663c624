/** The renter's day, first part: operations on the account that need no pod. */
import { z } from 'zod';
import { eventually } from '../../fakes/eventually.ts';
import { mailedToken } from '../../fakes/scenes/outbox.ts';
import { payIn } from '../../fakes/scenes/wallet.ts';
import * as account from './account.ts';
import type { DayScene } from './day-scene.ts';
import { PUBLIC_KEY } from './day-scene.ts';
import * as own from './own.ts';
import { DockerCredential, Secret, SshKey, Template } from './resources.ts';
import { AnyObject, Message, Success } from './types.ts';

const PASSWORD = 'correct horse battery';
const NEW_PASSWORD = 'another horse battery';
export const RENTER = 'renter@example.com';
const FRIEND = 'friend@example.com';

/** Headers of a signed-in renter with an API key. */
export type Renter = { id: string; key: Record<string, string>; session: Record<string, string> };

/** Calls the routes that need no account. */
export async function visitPublicRoutes({ api, market }: DayScene): Promise<void> {
  const { call } = api;
  await call('GET /', account.Health);
  let isAwake = false;
  const sleeping = call('GET /sleep/{seconds}', account.Slept, { params: { seconds: '1' } });
  void sleeping.finally(() => {
    isAwake = true;
  });
  await eventually('the end of the sleep', async () => {
    await market.clock.advance(1_000);
    return isAwake;
  });
  await sleeping;
  await call('GET /version', account.Version);
  await call('GET /openapi.json', AnyObject);
  await call('GET /v1/shared-config', account.SharedConfig);
  await call('GET /users/get-ip', account.Address);
  await call('GET /users/search', account.Exists, { query: { email: FRIEND } });
  await call('GET /keys/scopes', account.Scopes);
  await call('GET /balance/convert/alpha', account.AlphaQuote, { query: { amount: 10 } });
  await call('GET /balance/convert/alpha', account.AlphaQuote, {
    query: { amount: 10, netuid: 7 },
  });
  await call('GET /balance/alpha/subnets', z.array(account.AlphaSubnet));
}

/** Signs up, verifies the address, and replaces a forgotten password. */
export async function signUp(scene: DayScene): Promise<Renter> {
  const { api, market } = scene;
  const { call } = api;
  const credentials = { email: RENTER, password: PASSWORD };
  const made = await call('POST /users', account.SignUp, { body: credentials });
  await call('POST /auth/signup', account.SignUp, {
    body: { email: FRIEND, password: PASSWORD, referral_code: made.user.referral_code },
  });
  await call('POST /auth/resend-verify-email', Message, { body: { email: RENTER } });
  for (const address of [RENTER, FRIEND]) {
    const token = await mailedToken(market, address, 'verify-email');
    await call('POST /auth/verify-email', Message, { body: { token } });
  }
  await call('POST /users/request-reset-password', Message, { body: { email: RENTER } });
  const reset = await mailedToken(market, RENTER, 'password-reset');
  await call('POST /users/reset-password', Message, {
    body: { token: reset, new_password: NEW_PASSWORD },
  });
  const { token } = await call('POST /users/login', account.LogIn, {
    body: { email: RENTER, password: NEW_PASSWORD },
  });
  const key = { 'x-api-key': made.api_key };
  const session = { authorization: `Bearer ${token}` };
  await useSessions(scene, session);
  return { id: made.user.id, key, session };
}

/** Logs in with a ticket, and ends sessions. */
async function useSessions({ api }: DayScene, headers: Record<string, string>): Promise<void> {
  const { call } = api;
  const begin = async () => {
    const { ticket } = await call('POST /auth/tickets', account.LogInTicket, { headers });
    const body = { ticket };
    return call('POST /auth/exchange-ticket', account.LogIn, { body });
  };
  const { token } = await begin();
  await call('POST /auth/logout', Success, { headers: { authorization: `Bearer ${token}` } });
  await begin();
  const { sessions } = await call('GET /users/me/sessions', account.SessionPage, { headers });
  const id = sessions.find(({ current }) => !current)?.id ?? '';
  await call('DELETE /users/me/sessions/{id}', Success, { headers, params: { id } });
  await call('DELETE /users/me/sessions', Success, { headers });
}

/** Changes the profile, keys and settings. */
export async function arrangeAccount(scene: DayScene, renter: Renter): Promise<void> {
  const { call } = scene.api;
  const { key: headers, session } = renter;
  await call('GET /users/me', account.Account, { headers });
  await call('PUT /users/me', account.Account, {
    headers,
    body: { name: 'Ada', company_name: 'Ada & Co', avatar_url: 'https://example.com/ada.png' },
  });
  await call('GET /users/me/preference', account.Preference, { headers });
  await arrangeKeys(scene, renter);
  await keepSecret(scene, renter);
  await arrangeSettings(scene, renter);
  await call('GET /users/me/chat/callback', account.ChatLink, {
    headers,
    query: await chatGrant(scene, renter),
  });
  await call('POST /users/presigned-url', account.Upload, {
    headers,
    body: { file_name: 'a.png', content_type: 'image/png', size_bytes: 10, purpose: 'avatar' },
  });
  await call('POST /users/me/stream-ticket', own.StreamTicket, { headers });
  await arrangeMoney(scene, renter);
  await call('GET /users/me', account.Account, { headers: session });
}

async function chatGrant({ api, chat }: DayScene, { key: headers }: Renter) {
  const { authorization_url: url } = await api.call(
    'GET /users/me/chat/oauth-url',
    account.ChatUrl,
    { headers },
  );
  return chat.allow(url ?? '', '4711');
}

async function arrangeKeys({ api }: DayScene, { session: headers, key }: Renter): Promise<void> {
  const { call } = api;
  const made = await call('POST /keys', account.NewApiKey, {
    headers,
    body: { name: 'second', scopes: ['read'] },
  });
  const params = { id: made.id };
  await call('GET /keys', z.array(account.ApiKey), { headers: key });
  await call('GET /keys', z.array(account.ApiKey), { headers });
  await call('GET /keys/{id}', account.ApiKey, { headers, params });
  await call('PATCH /keys/{id}', account.ApiKey, { headers, params, body: { name: 'third' } });
  await call('DELETE /keys/{id}', account.ApiKey, { headers, params });

  const sshKey = { name: 'mine', public_key: PUBLIC_KEY };
  const ssh = await call('POST /ssh-keys', SshKey, { headers: key, body: sshKey });
  const of = { headers: key, params: { id: ssh.id } };
  await call('GET /ssh-keys', z.array(SshKey), { headers: key });
  await call('GET /ssh-keys/{id}', SshKey, of);
  await call('PUT /ssh-keys/{id}', SshKey, { ...of, body: { ...sshKey, name: 'laptop' } });
  await call('DELETE /ssh-keys/{id}', SshKey, of);
  await call('POST /ssh-keys', SshKey, { headers: key, body: sshKey });

  const login = { docker_username: 'ada', docker_password: 'hush' };
  const docker = await call('POST /docker-credentials', DockerCredential, {
    headers: key,
    body: login,
  });
  const at = { headers: key, params: { id: docker.id } };
  await call('GET /docker-credentials', z.array(DockerCredential), { headers: key });
  await call('GET /docker-credentials/{id}', DockerCredential, at);
  await call('PUT /docker-credentials/{id}', DockerCredential, {
    ...at,
    body: { ...login, name: 'hub' },
  });
  await call('DELETE /docker-credentials/{id}', DockerCredential, at);
}

async function keepSecret({ api }: DayScene, { key: headers }: Renter): Promise<void> {
  const { call } = api;
  const body = { name: 'TOKEN', value: 'hush' };
  const made = await call('POST /secrets', Secret, { headers, body });
  await call('GET /secrets', z.array(Secret).length(1), { headers });
  await call('DELETE /secrets/{id}', Secret, { headers, params: { id: made.id } });
}

async function arrangeSettings({ api }: DayScene, { key: headers }: Renter): Promise<void> {
  const { call } = api;
  await call('GET /users/me/notification', account.EffectiveNotification, { headers });
  await call('PUT /users/me/notification', account.NotificationSetting, {
    headers,
    body: { low_balance: false },
  });
  await call('GET /users/me/low-balance-threshold', account.EffectiveThreshold, { headers });
  await call('PUT /users/me/low-balance-threshold', account.Threshold, {
    headers,
    body: { threshold_usd: 7 },
  });
  await call('GET /users/me/low-balance-threshold', account.EffectiveThreshold, { headers });
  const template = { name: 'mine', docker_image: 'ubuntu', tags: ['mine'] };
  const made = await call('POST /templates', Template, { headers, body: template });
  const at = { headers, params: { id: made.id } };
  await call('GET /templates', z.array(Template));
  await call('GET /templates', z.array(Template), { headers });
  await call('GET /templates/{id}', Template, at);
  await call('PUT /templates/{id}', Template, { ...at, body: { ...made, readme: 'words' } });
  await call('PUT /users/me', account.Account, {
    headers,
    body: { preference: { default_template_id: made.id } },
  });
  await call('GET /users/me/preference', account.Preference, { headers });
  await call('DELETE /users/me/preference/default-template', account.Preference, { headers });
  await call('DELETE /templates/{id}', Template, at);
}

async function arrangeMoney({ api, market }: DayScene, renter: Renter): Promise<void> {
  const { call } = api;
  const { key: headers } = renter;
  await call('GET /users/me/auto-top-up', account.AutoTopUp.nullable(), { headers });
  await call('PUT /users/me/auto-top-up', account.AutoTopUp, {
    headers,
    body: { enabled: true, threshold_usd: 5, amount_usd: 20, payment_method_id: 'sim_ok' },
  });
  await call('GET /users/me/auto-top-up', account.AutoTopUp.nullable(), { headers });
  await payIn(market.ports.db, renter.id, 50_000_000);
  await call('POST /users/me/transfer-credits', account.Transferred, {
    headers,
    body: { recipient_email: FRIEND, amount: 1.5, note: 'lunch' },
  });
  await exceedBudget({ api, market }, renter);
  await call('GET /users/me/transfer-history', z.array(account.Transfer), { headers });
  await call('GET /users/me/transfer-credit-history', z.array(account.Transfer), { headers });
  await call('GET /users/me/ledger', own.LedgerPage, { headers });
  await call('GET /users/me/ledger', own.LedgerPage, {
    headers,
    query: { order: 'desc', limit: 1 },
  });
  await completeOnboarding({ api, market }, headers);
  await call('PUT /users/me/referral-payout-method', account.Account, {
    headers,
    body: { referral_payout_method: 'stripe_connect' },
  });
}

/** Sends a transfer above the budget of its key. */
async function exceedBudget(
  { api, market }: Pick<DayScene, 'api' | 'market'>,
  { session: headers }: Renter,
): Promise<void> {
  const limited = await api.call('POST /keys', account.NewApiKey, {
    headers,
    body: { name: 'limited', max_budget_usd: 1 },
  });
  const refused = await market.call('POST', '/users/me/transfer-credits', {
    headers: { 'x-api-key': limited.key },
    body: { recipient_email: FRIEND, amount: 2 },
  });
  if (refused.status !== 402) throw new Error(`the transfer got ${refused.status}`);
  const at = { headers, params: { id: limited.id } };
  await api.call('GET /keys/{id}/refusals', account.Refusals, at);
  await api.call('DELETE /keys/{id}', account.ApiKey, at);
}

/** Opens the page of the simulated payment processor, as the owner's browser does. */
async function completeOnboarding(
  { api, market }: Pick<DayScene, 'api' | 'market'>,
  headers: Record<string, string>,
): Promise<void> {
  await api.call('GET /users/me/stripe-connect', own.PayoutAccount, { headers });
  const begun = await api.call('POST /users/me/stripe-connect', own.PayoutAccount, { headers });
  const url = new URL(begun.onboarding_url ?? '').pathname;
  Success.parse((await market.server.inject({ method: 'GET', url })).json());
}

/** Removes the account after everything that belongs to it. */
export async function leave({ api }: DayScene, { key, session }: Renter): Promise<void> {
  await api.call('DELETE /users/me/chat', Success, { headers: key });
  await api.call('DELETE /users/me', account.Removed, { headers: session });
}
