/** The provider's pages in a browser, against a real central API: log-in, adding a node, verification, price, notice. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { createSigner, toHex } from '#shared/signing/sr25519.ts';
import { type ConsoleScene, createConsoleScene } from '../../fakes/scenes/console-scene.ts';
import { DEFAULT_TEMPLATE } from '../../fakes/scenes/market-fixture.ts';
import { expectAccessible, settled } from '../../fixtures/browser.ts';
import { FAILED_CHECK } from '../../fixtures/failed-check.ts';

const DAY_MS = 86_400_000;
const POD_NAME = '<i>tenant</i>';

let scene: ConsoleScene;
let session: { token: string; name: string };
let nodeId: string;
let failedId: string;
beforeAll(async () => {
  scene = await createConsoleScene();
  const { market } = scene;
  market.agents.rewardShares = async () => ({ rented: 0.02, idle: 0.01, obstacles: [] });
  const node = await market.verifiedNode();
  nodeId = node.id;
  const failed = await market.addNode();
  failedId = failed.id;
  await market.report(failed, { verdict: 'failed', checks: [FAILED_CHECK] });
  const account = await market.renter();
  await market.call('POST', `/executors/${nodeId}/rent`, {
    headers: account.key,
    body: { pod_name: POD_NAME, template_id: DEFAULT_TEMPLATE },
  });
  session = { token: await market.logIn(), name: market.provider.hotkey };
});
afterAll(() => scene?.close());

const open = (options: Parameters<ConsoleScene['open']>[0] = {}) =>
  scene.open({ portalSession: session, ...options });

it('logs in with a pasted signature, and returns to the requested page', async () => {
  const page = await scene.open();
  await page.goto('/provider/earnings');
  await settled(page, 'Log in as a provider');
  const form = page.locator('form').filter({ hasText: 'Message to sign' });
  const message = (await form.locator('pre').first().textContent()) ?? '';
  const signer = createSigner(new Uint8Array(32).fill(9));
  await form.getByLabel('Hotkey').fill(signer.hotkey);
  await form.getByLabel('Signature').fill('00');
  await form.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('unauthorized').waitFor();
  expect(await form.getByLabel('Hotkey').inputValue()).toBe(signer.hotkey);
  page.problems.length = 0;
  const signature = toHex(signer.sign(new TextEncoder().encode(message)));
  await form.getByLabel('Signature').fill(signature);
  await page.keyboard.press('Enter');
  await settled(page, 'Earnings');
  await page.getByRole('link', { name: /^Provider 5/ }).click();
  await settled(page, 'Provider profile');
  await page.getByRole('button', { name: 'Log out of the portal' }).click();
  await settled(page, 'Log in as a provider');
  expect(page.problems).toEqual([]);
});

it('logs in with the ticket of a link, which it removes from the address', async () => {
  const created = await scene.market.portal('POST', '/auth/tickets', { token: session.token });
  const page = await scene.open();
  await page.goto(`/provider#portal-ticket=${created.body.data.ticket}`);
  await settled(page, 'Nodes');
  await page.getByRole('link', { name: /^Provider 5/ }).waitFor();
  expect(page.url()).not.toContain('ticket');
  expect(page.problems).toEqual([]);
});

it('logs in with a wallet extension, which signs the message as bytes', async () => {
  const page = await scene.open();
  const signer = createSigner(new Uint8Array(32).fill(8));
  await page.exposeFunction('signInTest', (data: string) => {
    const text = Buffer.from(data.slice(2), 'hex').toString();
    return toHex(signer.sign(new TextEncoder().encode(`<Bytes>${text}</Bytes>`)));
  });
  await page.addInitScript(`window.injectedWeb3 = { 'test-wallet': { enable: async () => ({
    accounts: { get: async () => [{ address: '${signer.hotkey}', name: 'Mine', type: 'sr25519' }] },
    signer: { signRaw: async ({ data }) => ({ signature: await window.signInTest(data) }) },
  }) } };`);
  await page.goto('/provider/log-in');
  await page.getByRole('button', { name: 'Connect the wallet' }).click();
  await page.getByRole('button', { name: 'Sign and log in' }).click();
  await settled(page, 'Nodes');
  await page.getByText('You offer no nodes.').waitFor();
  expect(page.problems).toEqual([]);
});

it('adds a node after a bad address, and shows the next steps', async () => {
  const page = await open();
  await page.goto('/provider/add-node');
  await page.getByLabel('GPU', { exact: true }).selectOption('NVIDIA H100 80GB HBM3');
  await page.getByLabel('Number of GPUs').fill('8');
  await page.getByLabel('IP address').fill('host.example');
  await page.getByLabel(/^Price/).fill('99');
  await page.getByText('outside the allowed range').waitFor();
  await page.getByLabel(/^Price/).fill('2.5');
  await page.getByText('above all offers').waitFor();
  await page.getByRole('button', { name: 'Add the node' }).click();
  await page.getByText('host.example is not an IP address').waitFor();
  expect(await page.getByLabel('Number of GPUs').inputValue()).toBe('8');
  page.problems.length = 0;
  await page.getByLabel('IP address').fill('127.0.0.1');
  await page.getByLabel('Port of the agent').fill('9999');
  await page.keyboard.press('Enter');
  await settled(page, /^Node /);
  await page.getByText('Next steps until renters can rent the node').waitFor();
  await page.getByText('Enrol the agent’s key', { exact: true }).waitFor();
  await expectAccessible(page);
  expect(page.problems).toEqual([]);
});

it('shows a failed check with measured and required value, effect and remedy', async () => {
  const page = await open();
  await page.goto(`/provider/nodes/${failedId}`);
  const row = page.getByRole('row').filter({ hasText: 'Disk floor' });
  await row.waitFor();
  for (const text of [
    FAILED_CHECK.measured,
    FAILED_CHECK.required,
    FAILED_CHECK.remediation,
    'No new rentals',
    'docker system df',
  ]) {
    expect(await row.textContent()).toContain(text);
  }
  expect(page.problems).toEqual([]);
});

it('changes the price, pauses, announces and withdraws', async () => {
  const page = await open();
  await page.goto(`/provider/nodes/${nodeId}/settings`);
  await page.getByLabel(/^Price/).fill('2.4');
  await page.getByText('You receive').waitFor();
  await page.getByRole('button', { name: 'Change the price' }).click();
  await page.getByText('The price has been changed.').waitFor();
  await page.getByText('Now $2.40').waitFor();
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Pause' }).click();
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('button', { name: 'Pause' }).waitFor();
  await page.getByLabel('Start, in your time zone').fill(localTimeIn(3));
  await page.getByLabel('Reason').fill('new switch');
  await page.getByRole('button', { name: 'Announce the maintenance' }).click();
  await page.getByRole('button', { name: 'Withdraw the notice' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Withdraw' }).click();
  await page.getByRole('button', { name: 'Announce the maintenance' }).waitFor();
  expect(page.problems).toEqual([]);
});

/** Value of a field `datetime-local`. The time zone of the browser may change it by some hours. */
const localTimeIn = (days: number) =>
  naiveUtc(scene.market.clock.now() + days * DAY_MS).slice(0, 'YYYY-MM-DDTHH:MM'.length);

it('sets a password, which ends the session and then logs in', async () => {
  const { market } = scene;
  const signer = createSigner(new Uint8Array(32).fill(7));
  const page = await scene.open({
    portalSession: { token: await market.logIn(signer), name: signer.hotkey },
  });
  await page.goto('/provider/profile');
  const form = page.locator('form').filter({ hasText: 'New password' });
  const message = (await form.locator('pre').first().textContent()) ?? '';
  const signature = toHex(signer.sign(new TextEncoder().encode(message)));
  await form.getByLabel('Signature').fill(signature);
  await form.getByLabel('New password').fill('correct horse battery');
  await page.keyboard.press('Enter');
  await settled(page, 'Log in as a provider');
  const logIn = page.locator('form').filter({ hasText: 'Log in with the password' });
  await logIn.getByLabel('Hotkey').fill(signer.hotkey);
  await logIn.getByLabel('Password').fill('correct horse battery');
  await page.keyboard.press('Enter');
  await settled(page, 'Provider profile');
});

it('shows tenants with markup in their names as text', async () => {
  const page = await open();
  await page.goto(`/provider/nodes/${nodeId}/pods`);
  await page.getByText(POD_NAME).waitFor();
  expect(page.problems).toEqual([]);
});

it.each([
  ['a 500', { status: 500, json: { code: 'internal_error', detail: 'It failed', hint: 'Wait.' } }],
  ['a malformed answer', { json: { success: true } }],
])('%s disables only its panel', async (_, answer) => {
  const page = await open();
  await page.route('**/verification', (route) => route.fulfill(answer));
  await page.goto(`/provider/nodes/${nodeId}`);
  await page.getByRole('alert').first().waitFor();
  await page.getByText('Smallest rental').waitFor();
});

it('a dropped connection disables only its panel', async () => {
  const page = await open();
  await page.route('**/executors/stats', (route) => route.abort());
  await page.goto(`/provider/nodes/${nodeId}/settings`);
  await page.getByText('unreachable').waitFor({ timeout: 15_000 });
  await page.getByText('You receive').waitFor();
});

it('an expired session requests a log-in over the page, whose typed input stays', async () => {
  const page = await open();
  await page.goto('/provider/add-node');
  await page.getByLabel('IP address').fill('203.0.113.7');
  await page.route('**/portal/executors', (route) =>
    route.fulfill({ status: 419, json: { code: 'session_expired', detail: 'Expired', hint: 'x' } }),
  );
  await page.getByLabel('GPU', { exact: true }).selectOption('NVIDIA L4');
  await page.getByRole('button', { name: 'Add the node' }).click();
  await page.getByRole('dialog', { name: 'Your provider session has ended' }).waitFor();
  expect(await page.getByLabel('IP address').inputValue()).toBe('203.0.113.7');
});

it('shows earnings whose parts add up, with the names of the nodes', async () => {
  const { market } = scene;
  for (let minute = 0; minute < 3; minute += 1) {
    for (let step = 0; step < 6; step += 1) {
      await market.clock.advance(10_000);
      await market.sync();
    }
    await market.central.meterPods();
  }
  const page = await open();
  await page.goto('/provider/earnings');
  const microOf = (text: string) => Math.round(Number(text.replaceAll(/[$,]/g, '')) * 1_000_000);
  const rows = (table: string) =>
    page.getByRole('table', { name: table, exact: true }).locator('tbody tr');
  const earned = async (table: string) => {
    await rows(table).first().waitFor();
    const texts = await rows(table).locator('td[data-title=Earned]').allInnerTexts();
    return texts.map(microOf);
  };
  const sum = (amounts: readonly number[]) => amounts.reduce((all, each) => all + each, 0);
  const parts = await earned('Earnings');
  const [posted = 0, unposted = 0] = parts;
  expect(unposted).toBeGreaterThan(0);
  expect(sum(await earned('Earnings by node'))).toBe(posted);
  expect(sum(await earned('Statement'))).toBe(posted);
  const total = page
    .locator('dl.facts > div', { has: page.getByText('Earned', { exact: true }) })
    .locator('dd');
  expect(microOf(await total.innerText())).toBe(sum(parts));
  const { huid } = (await market.call('GET', `/executors/${nodeId}`)).body;
  await rows('Earnings by node').getByRole('link', { name: huid }).waitFor();
  await rows('Statement').getByRole('link', { name: huid }).waitFor();
  await expectAccessible(page);
  expect(page.problems).toEqual([]);
});
