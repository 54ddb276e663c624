/** The console in a browser, against a real central API: log-in, home, pods, a pod, errors and an expired session. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TestAccount } from '../../fakes/scenes/central-fixture.ts';
import { type ConsoleScene, createConsoleScene } from '../../fakes/scenes/console-scene.ts';
import { DEFAULT_TEMPLATE } from '../../fakes/scenes/market-fixture.ts';
import { expectAccessible } from '../../fixtures/browser.ts';

const POD_NAME = '<b onclick="x">first</b>';

let scene: ConsoleScene;
let account: TestAccount;
let podId: string;
beforeAll(async () => {
  scene = await createConsoleScene();
  const { market } = scene;
  account = await market.renter();
  const node = await market.verifiedNode();
  const { body } = await market.call('POST', `/executors/${node.id}/rent`, {
    headers: account.key,
    body: { pod_name: POD_NAME, template_id: DEFAULT_TEMPLATE },
  });
  podId = body.id;
  await market.central.syncPods();
});
afterAll(() => scene?.close());

it('leads to the log-in, and from there to the requested page', async () => {
  const page = await scene.open();
  await page.goto('/pods?favorites=true');
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  await page.getByLabel('E-mail').fill(account.email);
  await page.getByLabel('Password').fill('wrong password');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('unauthorized').waitFor();
  expect(await page.getByLabel('E-mail').inputValue()).toBe(account.email);
  page.problems.length = 0;
  await page.getByLabel('Password').fill(account.password);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Pods', exact: true }).waitFor();
  expect(page.url()).toBe(`${scene.origin}/pods?favorites=true`);
  expect(page.problems).toEqual([]);
});

it.each(['light', 'dark'] as const)(
  'explains an unknown address in the %s theme',
  async (theme) => {
    const page = await scene.open({ account, theme });
    await page.goto('/no/such/page');
    await page.getByRole('heading', { name: 'Page not found', exact: true }).waitFor();
    await expectAccessible(page);
    expect(page.problems).toEqual([]);
  },
);

it('has no test clock, because the marketplace is not simulated', async () => {
  for (const visitor of [account, undefined]) {
    const page = await scene.open(visitor === undefined ? {} : { account: visitor });
    await page.goto('/operator/clock');
    await page.getByRole('heading', { name: 'Page not found', exact: true }).waitFor();
    expect(await page.getByText('Operators only').count()).toBe(0);
    expect(page.problems).toEqual([]);
  }
});

it('shows times relative to the clock of the server, although that of the browser is behind', async () => {
  const page = await scene.open({ account });
  await page.addInitScript('const now = Date.now; Date.now = () => now() - 150_000;');
  await page.goto('/pods');
  const rented = page.getByRole('table', { name: 'Pods', exact: true }).locator('time');
  await rented.first().waitFor();
  expect(await rented.first().innerText()).toMatch(/^(?:now|\d+ (?:s|min) ago)$/);
});

it('shows a name with markup as text, and the pod with its connection', async () => {
  const page = await scene.open({ account });
  await page.goto('/pods');
  await page.getByRole('link', { name: POD_NAME }).click();
  await page.getByRole('heading', { name: POD_NAME }).waitFor();
  expect(await page.title()).toBe(`${POD_NAME} · Podwright`);
  await page.getByText('Log in over SSH').waitFor();
  const section = page.getByRole('navigation').getByRole('link', { name: 'Pods', exact: true });
  expect(await section.getAttribute('aria-current')).toBe('page');
  await expectAccessible(page);
  expect(page.url()).toBe(`${scene.origin}/pods/${podId}`);
  expect(page.problems).toEqual([]);
});

it('an error shows code, hint and request id, and disables only its panel', async () => {
  const page = await scene.open({ account });
  await page.route('**/api/pods', (route) =>
    route.fulfill({
      status: 500,
      headers: { 'X-Request-Id': 'r-1' },
      json: { code: 'internal_error', detail: 'It failed', hint: 'Report it.' },
    }),
  );
  await page.goto('/');
  await page.getByText('internal_error').first().waitFor();
  expect(await page.getByText('r-1').count()).toBeGreaterThan(0);
  await page.getByText('Spending').waitFor();
  await page.unroute('**/api/pods');
  await page.getByRole('button', { name: 'Try again' }).first().click();
  await page.getByText('of 1 pods run').waitFor();
});

it('a malformed answer disables only its panel', async () => {
  const page = await scene.open({ account });
  await page.route('**/api/pods', (route) => route.fulfill({ json: { not: 'a list' } }));
  await page.goto('/');
  await page.getByText('This part of the page failed').first().waitFor();
  await page.getByText('Spending').waitFor();
});

it('an expired session requests a log-in over the page, which then continues', async () => {
  const page = await scene.open({ account });
  await page.goto('/pods');
  await page.getByRole('link', { name: POD_NAME }).waitFor();
  await page.evaluate(`localStorage.setItem('podwright.session.user',
    JSON.stringify({ token: 'expired', name: ${JSON.stringify(account.email)} }))`);
  await page.reload();
  await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
  await expectAccessible(page);
  await page.getByLabel('Password').fill(account.password);
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: POD_NAME }).waitFor();
  expect(await page.getByRole('dialog').count()).toBe(0);
});

it('finds a pod with Ctrl-K by keyboard alone', async () => {
  const page = await scene.open({ account });
  await page.goto('/');
  await page.getByText('of 1 pods run').waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog', { name: 'Search' }).waitFor();
  await page.keyboard.type(podId.slice(0, 8));
  await page.getByRole('option').waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: POD_NAME }).waitFor();
  expect(page.problems).toEqual([]);
});

/** Opens the link of a new ticket of `owner` in the page. */
async function openTicket(page: Awaited<ReturnType<typeof scene.open>>, owner: TestAccount) {
  const { body } = await scene.market.call('POST', '/auth/tickets', { headers: owner.session });
  expect(body.ticket).toMatch(/./);
  await page.goto(`/pods#ticket=${body.ticket}`);
  return body.ticket as string;
}
const nameIn = (page: Awaited<ReturnType<typeof scene.open>>) => page.locator('.account');

it('logs in with the ticket of a link, removes it from the address, and ignores a second use', async () => {
  const page = await scene.open();
  const ticket = await openTicket(page, account);
  await page.getByRole('link', { name: POD_NAME }).waitFor();
  expect(page.url()).toBe(`${scene.origin}/pods`);
  expect(page.problems).toEqual([]);
  await page.goto('about:blank');
  await page.goto(`/#ticket=${ticket}`);
  await page.getByText('ticket_invalid').waitFor();
  await page.getByText('of 1 pods run').waitFor();
  expect(await page.getByRole('dialog').count()).toBe(0);
});

it('asks before a ticket replaces the session of another account', async () => {
  const other = await scene.market.renter();
  const page = await scene.open({ account });
  await openTicket(page, other);
  const dialog = page.getByRole('dialog', { name: 'Switch to another account?' });
  await dialog.getByText(other.email).waitFor();
  await expectAccessible(page);
  const ended = page.waitForResponse('**/api/auth/logout');
  await page.getByRole('button', { name: 'Stay' }).click();
  expect((await ended).status()).toBe(200);
  expect(await nameIn(page).innerText()).toBe(account.email);
  await page.goto('about:blank');
  await openTicket(page, other);
  await page.getByRole('button', { name: 'Switch' }).click();
  await page.getByText(other.email).waitFor();
  expect(page.problems).toEqual([]);
});

// The last test, because it ends the session of the account.
it('a log-out in one tab ends the session in the others', async () => {
  const page = await scene.open({ account });
  await page.goto('/');
  const other = await page.context().newPage();
  await other.goto('/pods');
  await other.getByRole('link', { name: POD_NAME }).waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  await other.getByRole('heading', { name: 'Log in' }).waitFor();
});
