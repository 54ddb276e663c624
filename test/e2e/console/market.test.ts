/** The market and the rental of a pod in a browser, against a real central API. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TestAccount } from '../../fakes/scenes/central-fixture.ts';
import { type ConsoleScene, createConsoleScene } from '../../fakes/scenes/console-scene.ts';
import { type AddedNode, DEFAULT_TEMPLATE } from '../../fakes/scenes/market-fixture.ts';
import { expectAccessible } from '../../fixtures/browser.ts';

const L40S = { gpuType: 'NVIDIA L40S', name: 'NVIDIA L40S' };

let scene: ConsoleScene;
let account: TestAccount;
let cheap: AddedNode;
let small: AddedNode;
beforeAll(async () => {
  scene = await createConsoleScene();
  const { market } = scene;
  account = await market.renter();
  cheap = await market.verifiedNode({ gpus: 4, price: 2.5, minimum: 1 });
  small = await market.verifiedNode({ gpus: 1, price: 0.8, ...L40S });
  await market.verifiedNode({ gpus: 2, price: 3, minimum: 1 });
});
afterAll(() => scene?.close());

/** Pods of the account. */
async function pods(): Promise<{ id: string; pod_name: string; executor_id: string }[]> {
  return (await scene.market.call('GET', '/pods', { headers: account.key })).body;
}

it('filters, sorts and compares on the server, with the state in the address', async () => {
  const page = await scene.open({ account });
  await page.goto('/market');
  await page.getByText('3 entries').waitFor();
  expect(await page.getByRole('rowheader').first().textContent()).toContain('L40S');
  await page.getByLabel('GPU type').selectOption('H100');
  await page.getByLabel('Total price, at most').fill('8');
  await page.keyboard.press('Enter');
  await page.getByText('1 entry').waitFor();
  expect(page.url()).toContain('gpu_type=H100');
  expect(page.url()).toContain('price_per_hour_lte=8');
  await page.getByRole('button', { name: /^Bookmark / }).click();
  await page.getByRole('button', { name: /^Bookmark /, pressed: true }).waitFor();
  await page.getByRole('button', { name: 'Remove all filters' }).click();
  await page.getByText('3 entries').waitFor();
  await page.getByLabel('Bookmarked nodes only').check();
  await page.getByRole('button', { name: 'Show nodes' }).click();
  await page.getByText('1 entry').waitFor();
  await page.getByRole('checkbox', { name: /^Compare / }).check();
  await page.getByRole('heading', { name: 'Comparison' }).waitFor();
  await page.reload();
  await page.getByRole('heading', { name: 'Comparison' }).waitFor();
  expect(page.problems).toEqual([]);
});

it('explains why nothing fits; one click relaxes the filter to the offered value', async () => {
  const page = await scene.open({ account });
  await page.goto('/market?price_lte=0.5');
  await page.getByText('No node fits.').waitFor();
  await page.getByRole('button', { name: /^Set “Price per GPU, at most” to \$0\.80$/ }).click();
  await page.getByText('1 entry').waitFor();
  expect(page.url()).toContain('price_lte=0.8');
  expect(page.problems).toEqual([]);
});

it('requests a node with the filters, and cancels the request', async () => {
  const page = await scene.open({ account });
  await page.goto('/market?gpu_type=H200&gpu_count_gte=8');
  await page.getByRole('button', { name: 'Notify me' }).click();
  const dialog = page.getByRole('dialog', { name: 'Request a node' });
  expect(await dialog.getByLabel('GPU type').inputValue()).toBe('H200');
  await expectAccessible(page);
  await dialog.getByRole('button', { name: 'Request the node' }).click();
  await page.getByText('8 × H200').waitFor();
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await page.getByRole('button', { name: 'Cancel the request' }).click();
  await page.getByText('Cancelled').waitFor();
  expect(page.problems).toEqual([]);
});

it('shows a node with its price range and whether it can be rented', async () => {
  const page = await scene.open({ account });
  await page.goto(`/market/${small.id}`);
  await page.getByText('1 GPU is free').waitFor();
  await page.getByRole('heading', { name: 'Prices in the market' }).waitFor();
  await page.getByText('less than a day observed').waitFor();
  await expectAccessible(page);
  expect(page.problems.filter((text) => !text.includes('hardware-utilization'))).toEqual([]);
});

it('loads the style sheet of a page again after a lost request', async () => {
  const page = await scene.open({ account });
  await page.goto('/');
  const lost: string[] = [];
  await page.route('**/assets/*.css', (route) => {
    if (lost.length > 0) return route.continue();
    lost.push(route.request().url());
    return route.abort();
  });
  await page.getByRole('link', { name: 'Market', exact: true }).click();
  await page.getByRole('heading', { name: 'Market', level: 1 }).waitFor();
  expect(lost).toHaveLength(1);
  await expectAccessible(page);
  const rules = await page.evaluate(
    `[...document.styleSheets].find(({ href }) => href === '${lost[0]}')?.cssRules.length`,
  );
  expect(rules).toBeGreaterThan(0);
});

it('rents once, although the answers to the request and its automatic repeats are lost', async () => {
  const page = await scene.open({ account });
  await page.goto(`/rent?node=${cheap.id}`);
  await page.getByText('First hour', { exact: true }).waitFor();
  await page.getByText('$2.50').first().waitFor();
  await page.getByLabel(/^Name/).fill('lost & found');
  await page.getByLabel(/^Environment/).fill('MODE=test');
  const keys: (string | undefined)[] = [];
  await page.route('**/rent', async (route) => {
    keys.push(route.request().headers()['idempotency-key']);
    if (keys.length > 3) return route.continue();
    await route.fetch();
    return route.abort('connectionreset');
  });
  await page.getByRole('button', { name: 'Rent the pod', exact: true }).click();
  await page.getByText('The request may have rented the pod.').waitFor();
  expect(await page.getByLabel(/^Name/).inputValue()).toBe('lost & found');
  await page.getByRole('button', { name: 'Rent the pod', exact: true }).click();
  await page.getByRole('heading', { name: 'lost & found' }).waitFor();
  expect(keys).toHaveLength(4);
  expect(new Set(keys).size).toBe(1);
  const rented = (await pods()).filter(({ pod_name: name }) => name === 'lost & found');
  expect(rented.map(({ executor_id: node }) => node)).toEqual([cheap.id]);
  const { body } = await scene.market.call('GET', `/pods/${rented[0]?.id}`, {
    headers: account.key,
  });
  expect(body.template.environment).toMatchObject({ MODE: 'test' });
  expect(body.gpu_count).toBe('1');
});

it('rents by specification, shows the cost first, and relaxes a constraint that no node meets', async () => {
  const page = await scene.open({ account });
  await page.goto('/rent?gpu_type=L40S&max_price_per_gpu_hour=0.5');
  await page.getByText('No node fits.').waitFor();
  await page.getByRole('button', { name: /to \$0\.80$/ }).click();
  await page.getByText('First hour', { exact: true }).waitFor();
  await page.getByText('$0.80').first().waitFor();
  const command = await page.locator('.command pre').last().textContent();
  expect(command).toContain('/api/executors/rent-by-spec');
  expect(command).toContain('$KEY');
  expect(command).not.toContain(account.token);
  await page.getByRole('button', { name: 'Rent the pod', exact: true }).click();
  await page.getByRole('heading', { name: 'my-pod' }).waitFor();
  expect((await pods()).map(({ executor_id: node }) => node)).toContain(small.id);
});

it('shows the problem of a field, and keeps what was typed', async () => {
  const page = await scene.open({ account });
  await page.goto(`/rent?node=${cheap.id}`);
  await page.getByLabel(/^Environment/).fill('not a variable');
  await page.getByText('Line 1 is not NAME=value.').first().waitFor();
  await page.getByRole('button', { name: 'Rent the pod', exact: true }).click();
  await page.getByText('form_incomplete').waitFor();
  expect(await page.getByLabel(/^Environment/).inputValue()).toBe('not a variable');
  await page.goto('/market?min_reliability=7');
  await page.getByText('validation_error').waitFor();
  await page.getByRole('heading', { name: 'Prices in the market' }).waitFor();
});

it.each([
  ['a 500', { status: 500, json: { code: 'internal_error', detail: 'It failed' } }],
  ['a malformed answer', { json: { executors: 7 } }],
  ['an answer that is not JSON', { body: '<html>', contentType: 'text/html' }],
])('%s disables only the list of nodes', async (_, answer) => {
  const page = await scene.open({ account });
  await page.route('**/api/executors?**', (route) => route.fulfill(answer));
  await page.goto('/market');
  await page.getByRole('alert').first().waitFor();
  await page.getByText('You have no requests.').or(page.getByText('Cancelled')).first().waitFor();
  await page.getByRole('table', { name: 'Prices by GPU' }).waitFor();
});

it('a template of the account can be found and rented', async () => {
  const { market } = scene;
  const own = { name: '<i>own</i>', docker_image: 'example/own', docker_image_tag: '1' };
  await market.call('POST', '/templates', { headers: account.key, body: own });
  const page = await scene.open({ account });
  await page.goto(`/rent?node=${cheap.id}`);
  await page.getByLabel('Search templates').fill('example/own');
  const choice = page.getByRole('radio', { name: /<i>own<\/i>/ });
  await choice.check();
  expect(await choice.isChecked()).toBe(true);
  expect(await page.locator('.command pre').last().textContent()).not.toContain(DEFAULT_TEMPLATE);
});
