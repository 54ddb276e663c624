/** Pages of the renter's objects and money in a browser, against a real central API. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFakeBackupStorage } from '../../fakes/external/fake-backup-storage.ts';
import type { TestAccount } from '../../fakes/scenes/central-fixture.ts';
import { type ConsoleScene, createConsoleScene } from '../../fakes/scenes/console-scene.ts';
import { DEFAULT_TEMPLATE, PUBLIC_KEY } from '../../fakes/scenes/market-fixture.ts';
import { type ConsolePage, expectAccessible } from '../../fixtures/browser.ts';

const MARKUP = '<img src=x onerror="document.title=1">';
const HOOK = 'https://hooks.example.com/<b>';

let scene: ConsoleScene;
let account: TestAccount;

beforeAll(async () => {
  scene = await createConsoleScene({ backupStorage: createFakeBackupStorage() });
  const { market } = scene;
  account = await market.renter();
  const create = async (path: string, body: object): Promise<string> => {
    const answer = await market.call('POST', path, { headers: account.key, body });
    if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
    return answer.body.id;
  };
  const node = await market.verifiedNode();
  await market.rent(account, node.id);
  for (const ms of [2_000, 2_000, 30_000, 30_000]) {
    await market.sync();
    await market.clock.advance(ms);
  }
  await market.sync();
  await create('/volumes', { name: 'datasets', description: MARKUP });
  const image = { docker_image: 'ubuntu', description: MARKUP, environment: { A: MARKUP } };
  await create('/templates', { name: 'mine', ...image });
  await create('/webhooks', { url: HOOK, description: MARKUP });
  await create('/secrets', { name: 'token', value: 'x' });
  await create('/docker-credentials', { docker_username: MARKUP, docker_password: 'x' });
});
afterAll(() => scene?.close());

async function opened(path: string, heading: string): Promise<ConsolePage> {
  const page = await scene.open({ account });
  await page.goto(path);
  await page.getByRole('heading', { name: heading, exact: true, level: 1 }).waitFor();
  return page;
}

const button = (page: ConsolePage, name: string) => page.getByRole('button', { name, exact: true });

/** Micro-dollars of an amount such as `-$1,234.567890`. */
const microOf = (text: string) => Math.round(Number(text.replaceAll(/[$,]/g, '')) * 1_000_000);

/** The field for a name. */
const named = (page: ConsolePage) => page.getByLabel('Name', { exact: true });

it('a failed or malformed answer, or a dropped connection, disables only its panel', async () => {
  const page = await scene.open({ account });
  await page.route('**/api/users/me/ledger**', (route) =>
    route.fulfill({ status: 500, json: { code: 'internal_error', detail: 'It failed' } }),
  );
  await page.route('**/api/users/me/auto-top-up', (route) => route.fulfill({ body: '{"a' }));
  await page.route('**/api/users/me/transfer-history*', (route) => route.fulfill({ json: {} }));
  await page.route('**/api/users/me/low-balance-threshold', (route) => route.abort());
  await page.goto('/money');
  await page.getByText('internal_error').waitFor();
  await page.getByText('not JSON').waitFor();
  await page.getByText('This part of the page failed').waitFor();
  await page.getByText('unreachable').waitFor();
  await page.getByText('The money lasts', { exact: true }).waitFor();
  await page.unrouteAll();
  await button(page, 'Try again').first().click();
  await page.getByText('Credit for the sign-up').waitFor();
});

describe('keys', () => {
  it('an API key is shown once, works, has a budget, and is deleted', async () => {
    const page = await opened('/api-keys', 'API keys');
    await named(page).fill(MARKUP);
    await page.getByLabel('Budget per day (USD)').fill('-3');
    await page.getByLabel('Rent', { exact: true }).check();
    // The browser rejects the number; the typed values stay.
    await button(page, 'Create the key').click();
    expect(await named(page).inputValue()).toBe(MARKUP);
    await page.getByLabel('Budget per day (USD)').fill('3.5');
    await button(page, 'Create the key').click();
    const shown = page.locator('.command code');
    const key = await shown.innerText();
    const { body } = await scene.market.call('GET', '/keys', { headers: { 'x-api-key': key } });
    const created = body.find(({ name }: { name: string }) => name === MARKUP);
    expect(created).toMatchObject({ scopes: ['read', 'rent'], daily_budget_usd: 3.5 });
    const row = page.getByRole('row').filter({ hasText: MARKUP });
    await row.getByText('of $3.50').waitFor();
    await row.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText(`API key ${MARKUP} is deleted.`).waitFor();
    expect(await row.count()).toBe(0);
    expect(page.problems).toEqual([]);
  });

  it('a rejected SSH key shows its problem at the field, keeps the text, and is then added', async () => {
    const page = await opened('/ssh-keys', 'SSH keys');
    await named(page).fill('laptop');
    await page.getByLabel('Public key').fill('not a key');
    await button(page, 'Add the key').click();
    await page.locator('.problem').waitFor();
    expect(await page.getByLabel('Public key').inputValue()).toBe('not a key');
    await page.getByLabel('Public key').fill(PUBLIC_KEY.replace('IJJ', 'IKK'));
    await button(page, 'Add the key').click();
    await page.getByText('SSH key laptop is saved.').waitFor();
  });
});

it('a webhook shows its secret once, is paused, resumed and rotated', async () => {
  const page = await opened('/webhooks', 'Webhooks');
  await page.getByLabel('Address').fill('https://hooks.example.com/new');
  await page.getByLabel('pod-fail').check();
  await page.getByLabel('Single outcomes').fill('backup.failed');
  await button(page, 'Create the webhook').click();
  const secret = page.locator('.command code');
  expect(await secret.innerText()).toMatch(/^whsec_/);
  const first = await secret.innerText();
  const row = page.getByRole('row').filter({ hasText: 'hooks.example.com/new' });
  await row.getByText('pod-fail, backup.failed').waitFor();
  await row.getByRole('button', { name: 'Pause' }).click();
  await row.getByText('Paused').waitFor();
  await row.getByRole('button', { name: 'Resume' }).click();
  await row.getByText('Delivering').waitFor();
  await row.getByRole('link').click();
  await page.getByText('Nothing was sent yet').waitFor();
  await button(page, 'Rotate the secret').click();
  await button(page, 'Replace the secret').click();
  await expect.poll(() => secret.innerText()).toMatch(/^whsec_/);
  expect(await secret.innerText()).not.toBe(first);
  expect(page.problems).toEqual([]);
});

it('a volume is created, renamed and deleted', async () => {
  const page = await opened('/volumes', 'Volumes');
  await named(page).fill('models');
  await button(page, 'Create the volume').click();
  await page.getByText('Volume models is created').waitFor();
  await page.getByRole('link', { name: 'models' }).click();
  await named(page).fill('weights');
  await button(page, 'Save').click();
  await page.getByRole('heading', { name: 'weights', level: 1 }).waitFor();
  await button(page, 'Delete').click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('link', { name: 'datasets' }).waitFor();
  expect(page.problems).toEqual([]);
});

it('an official template is found, copied and changed', async () => {
  const page = await opened('/templates', 'Templates');
  await page.getByRole('searchbox').fill('no such template');
  await page.keyboard.press('Enter');
  await page.getByText('No template matches').waitFor();
  await page.goto(`/templates/new?from=${DEFAULT_TEMPLATE}`);
  await named(page).fill('copied');
  await page.getByLabel('Ports').fill('22, web');
  await button(page, 'Create the template').click();
  await page.getByText('“web” is not a port').waitFor();
  await page.getByLabel('Ports').fill('22, 8080');
  await page.getByLabel('Environment').fill('A=b=c');
  await button(page, 'Create the template').click();
  await page.getByRole('heading', { name: 'copied', level: 1 }).waitFor();
  await page.getByText('Variable A', { exact: true }).waitFor();
  await page.getByLabel('Environment').fill('B=1');
  await button(page, 'Save').click();
  await page.getByText('Variable B', { exact: true }).waitFor();
  expect(page.problems).toEqual([]);
});

describe('money', () => {
  it('a line expands to its metered intervals, and the journal is saved as CSV', async () => {
    const page = await opened('/money', 'Money');
    await page.getByText('The money lasts', { exact: true }).waitFor();
    const line = page.getByRole('button', { name: /Use of a pod|First charge of a pod/ }).first();
    await line.click();
    await page.getByRole('table', { name: 'Metered intervals' }).waitFor();
    await expectAccessible(page);
    const saved = page.waitForEvent('download');
    await button(page, 'Save as CSV').click();
    expect((await saved).suggestedFilename()).toBe('journal.csv');
    await page.getByText(/lines are saved\./).waitFor();
    expect(page.problems).toEqual([]);
  });

  it('adds up: the journal, the use since the last posting and the balance', async () => {
    const { market } = scene;
    await market.central.meterPods();
    await market.clock.advance(20_000);
    await market.sync();
    const page = await opened('/money', 'Money');
    const fact = async (name: string) =>
      microOf(
        await page
          .locator('dl.facts > div', { has: page.getByText(name, { exact: true }) })
          .locator('dd')
          .innerText(),
      );
    const journal = page.getByRole('table', { name: 'Journal' });
    const newest = journal.locator('tbody tr').first().locator('td').last();
    await expect
      .poll(async () => microOf(await newest.innerText()) - (await fact('Balance of the journal')))
      .toBe(0);
    const unposted = await fact('Used since the last posting');
    expect(unposted).toBeLessThan(0);
    expect((await fact('Balance of the journal')) + unposted).toBe(await fact('Balance'));
    expect((await fact('Balance')) - (await fact('Reserved for new pods'))).toBe(
      await fact('Available'),
    );
    expect(page.problems).toEqual([]);
  });

  it('a rejected transfer keeps what was typed, and thresholds are stored', async () => {
    const page = await opened('/money', 'Money');
    await page.getByLabel('E-mail of the recipient').fill('nobody@example.com');
    await page.getByLabel('Amount (USD)').fill('1.5');
    await button(page, 'Transfer $1.50 to nobody@example.com').click();
    await page.getByRole('alert').waitFor();
    expect(await page.getByLabel('Amount (USD)').inputValue()).toBe('1.5');
    await page.getByLabel('Available money below (USD)').fill('7');
    await button(page, 'Save the thresholds').click();
    await page.getByText('The thresholds are saved.').waitFor();
    const path = '/users/me/low-balance-threshold';
    const { body } = await scene.market.call('GET', path, { headers: account.key });
    expect(body.threshold_usd).toBe(7);
  });
});

it('mails are switched off, the password changes, and a deleted account is logged out', async () => {
  const other = await scene.market.renter();
  const page = await scene.open({ account: other });
  await page.goto('/notifications');
  await page.getByLabel('Failed pods').uncheck();
  await button(page, 'Save').click();
  await page.getByText('Your choice is saved.').waitFor();
  await page.goto('/sessions-and-account');
  await page.getByText('this session').waitFor();
  await page.getByLabel('New password').fill('another password');
  await page.getByLabel('Present password').fill('wrong');
  await button(page, 'Save address and password').click();
  await page.getByText('The current password is wrong').waitFor();
  expect(await page.getByLabel('New password').inputValue()).toBe('another password');
  await page.getByLabel('Present password').fill(other.password);
  await button(page, 'Save address and password').click();
  await page.getByText('Your address and password are saved.').waitFor();
  await button(page, 'Delete the account').click();
  await button(page, 'Delete the account and all its data').click();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
});
