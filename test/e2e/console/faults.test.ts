/**
 * A fault of one request disables only its panel, on every page. Each page meets one kind of fault; all combinations are
 * in faults.long.test.ts.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  createFullConsoleScene,
  type FullConsoleScene,
} from '../../fakes/scenes/full-console-scene.ts';
import { addressesOf, consoleRoutes } from '../../fixtures/console-pages.ts';
import { expectFaultsContained, FAULTS } from '../../fixtures/page-visits.ts';

const ROUTES = (await consoleRoutes())
  .filter(({ audience }) => audience !== 'anyone')
  .map((route, at) => ({ ...route, at }));

let scene: FullConsoleScene;
beforeAll(async () => {
  scene = await createFullConsoleScene();
});
afterAll(() => scene?.close());

it.concurrent.each(ROUTES)('$path', async (route) => {
  const { at } = route;
  const [address = ''] = addressesOf(route, scene.ids);
  let tried = 0;
  await expectFaultsContained(scene, address, (calls) => {
    const call = calls[at % calls.length];
    const fault = FAULTS[at % FAULTS.length];
    tried = calls.length;
    return call === undefined || fault === undefined ? [] : [[call, fault]];
  });
  expect(tried).toBeGreaterThan(0);
});
