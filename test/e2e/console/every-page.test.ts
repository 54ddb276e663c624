/**
 * Every page of the console: no violation of accessibility rules in either theme, usable at the width of a phone, no
 * error, no violation of the content security policy, and markup in texts of users shown as text.
 */
import type { BrowserContext } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../fakes/eventually.ts';
import { MARKUP } from '../../fakes/scenes/full-console-market.ts';
import {
  createFullConsoleScene,
  type FullConsoleScene,
} from '../../fakes/scenes/full-console-scene.ts';
import {
  expectAccessible,
  expectReachable,
  expectTabletFits,
  openProfile,
  openTab,
  settle,
  setView,
} from '../../fixtures/browser.ts';
import { addressesOf, type ConsoleRoute, consoleRoutes } from '../../fixtures/console-pages.ts';

const ROUTES = await consoleRoutes();

let scene: FullConsoleScene;
let visitor: BrowserContext;
let member: BrowserContext;
/** Paths of pages that show the markup as text. */
const marked = new Set<string>();
beforeAll(async () => {
  scene = await createFullConsoleScene();
  const { browser, origin, sessions } = scene;
  visitor = await openProfile(browser, { origin });
  member = await openProfile(browser, { origin, ...sessions });
});
afterAll(() => scene?.close());

it.concurrent.each(ROUTES)(
  '$path is accessible, usable on a phone and without an error',
  async (route) => {
    const page = await openTab(route.audience === 'anyone' ? visitor : member);
    for (const address of addressesOf(route, scene.ids)) {
      await setView(page, { isPhone: false, theme: 'light' });
      const policy = (await page.goto(address))?.headers()['content-security-policy'];
      expect(policy).toMatch(/^(?!.*unsafe).*script-src 'self'/);
      await settle(page);
      expect(await page.locator('main h1').innerText()).toMatch(titleOf(route, address));
      await expectAccessible(page);
      await expectTabletFits(page);
      await setView(page, { isPhone: true, theme: 'dark' });
      await expectAccessible(page);
      await expectReachable(page);
      expect([address, page.problems]).toEqual([address, []]);
      expect(await page.evaluate('window.ran')).toBeUndefined();
      expect(await page.locator('[onerror], img[src="x"]').count()).toBe(0);
      if ((await page.locator('main').innerText()).includes(MARKUP)) marked.add(route.path);
    }
    await page.close();
  },
);

/** The title in the table of pages, unless the page has the name of its object or redirects. */
function titleOf({ path, title }: ConsoleRoute, address: string): string | RegExp {
  return address === path && path !== '/provider' ? title : /./;
}

it('pages show the markup as text', () => {
  const texts = ['/', '/market', '/rent', '/pods', '/pods/:id/:tab?', '/logs'];
  const objects = ['/templates', '/templates/:id', '/money', '/ssh-keys', '/api-keys'];
  const logins = ['/registry-logins', '/webhooks', '/webhooks/:id', '/provider/profile'];
  const operators = [
    '/operator/accounts/:id',
    '/operator/providers',
    '/operator/audit',
    '/operator/clock',
  ];
  const expected = [...texts, ...objects, ...logins, ...operators, '/provider/nodes/:id/:tab?'];
  expect(expected.filter((path) => !marked.has(path))).toEqual([]);
});

it('the policy stops markup that a page would show as markup', async () => {
  const page = await openTab(member);
  await page.goto('/');
  await settle(page);
  await page.evaluate(`document.querySelector('main').innerHTML = ${JSON.stringify(MARKUP)}`);
  await eventually('a violation of the policy', () =>
    page.problems.some((text) => text.includes('Content Security Policy')),
  );
  expect(await page.evaluate('window.ran')).toBeUndefined();
  await page.close();
});
