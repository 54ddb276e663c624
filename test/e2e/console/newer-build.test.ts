/** Open pages after the console was built again, which removes the files that they have not loaded yet. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TestAccount } from '../../fakes/scenes/central-fixture.ts';
import { type ConsoleScene, createConsoleScene } from '../../fakes/scenes/console-scene.ts';
import { type ConsolePage, settle } from '../../fixtures/browser.ts';
import { replaceBuild } from '../../fixtures/built-console.ts';

const FILES = '**/assets/*';
const MESSAGE = 'A newer version of the console is available';

let scene: ConsoleScene;
let account: TestAccount;
beforeAll(async () => {
  scene = await createConsoleScene();
  account = await scene.market.renter();
});
afterAll(() => scene?.close());

const openHome = async () => {
  const page = await scene.open({ account });
  await page.goto('/');
  await settle(page);
  return page;
};

const link = (page: ConsolePage, name: string) =>
  page.getByRole('navigation').getByRole('link', { name, exact: true });

it('a page whose file did not load shows the error, and loads when the visitor tries again', async () => {
  const page = await openHome();
  await page.route(FILES, (route) => route.abort('connectionreset'));
  await link(page, 'Volumes').click();
  const retry = page.getByRole('button', { name: 'Try again' });
  await retry.waitFor();
  await page.unroute(FILES);
  await retry.click();
  await page.getByRole('heading', { level: 1, name: 'Volumes' }).waitFor();
  await page.context().close();
});

it('loads the newer build once at the address of a page whose file is gone', async () => {
  const [first, second] = [await openHome(), await openHome()];
  replaceBuild(scene.folder);
  await link(first, 'Volumes').click();
  await first.getByRole('heading', { level: 1, name: 'Volumes' }).waitFor();
  expect(new URL(first.url()).pathname).toBe('/volumes');
  expect(await first.locator('script[type=module]').getAttribute('src')).toContain('-next.js');
  first.problems.length = 0;
  await link(first, 'Secrets').click();
  await first.getByRole('heading', { level: 1, name: 'Secrets' }).waitFor();
  expect(first.problems).toEqual([]);

  // A part of a page does not end the page, which may have typed input.
  await second.keyboard.press('Control+k');
  await second.getByText(MESSAGE).waitFor();
  const reload = second.getByRole('button', { name: 'Load the page again' });
  await Promise.all([second.waitForEvent('load'), reload.click()]);
  await settle(second);
  await second.keyboard.press('Control+k');
  await second.getByRole('dialog', { name: 'Search' }).waitFor();
  await Promise.all([first.context().close(), second.context().close()]);
});

it('shows the message when a reload a moment ago did not help', async () => {
  const page = await openHome();
  // Another server of the same address still has the previous build.
  await page.route(FILES, (route) =>
    route.request().url().includes('pods-page') ? route.fulfill({ status: 404 }) : route.fallback(),
  );
  await page.route(
    (url) => url.pathname === '/',
    (route) =>
      route.fulfill({
        contentType: 'text/html',
        body: '<script type="module" src="/assets/x.js">',
      }),
  );
  const loads: string[] = [];
  page.on('load', () => loads.push(page.url()));
  await link(page, 'Pods').click();
  await page.getByText(MESSAGE).waitFor();
  expect(loads).toEqual([`${scene.origin}/pods`]);
  await page.context().close();
});
