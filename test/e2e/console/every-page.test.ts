/**
 * Every page of the console: no violation of accessibility rules in either theme, usable at the width of a phone, no
 * error, no violation of the content security policy, and markup in texts of users shown as text.
 */
import type { BrowserContext } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  createFullConsoleScene,
  type FullConsoleScene,
} from '../../fakes/scenes/full-console-scene.ts';
import {
  expectAccessible,
  expectReachable,
  openProfile,
  openTab,
  settle,
  setView,
} from '../../fixtures/browser.ts';
import { addressesOf, consoleRoutes } from '../../fixtures/console-pages.ts';

const ROUTES = await consoleRoutes();

let scene: FullConsoleScene;
let visitor: BrowserContext;
let member: BrowserContext;
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
      await page.goto(address);
      await settle(page);
      await expectAccessible(page);
      await setView(page, { isPhone: true, theme: 'dark' });
      await expectAccessible(page);
      await expectReachable(page);
      expect([address, page.problems]).toEqual([address, []]);
      expect(await page.evaluate('window.ran')).toBeUndefined();
      expect(await page.locator('[onerror], img[src="x"]').count()).toBe(0);
    }
    await page.close();
  },
);
