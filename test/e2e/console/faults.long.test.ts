/** Each kind of fault of each request of each page of the console disables only its panel. */
import { afterAll, beforeAll, it } from 'vitest';
import {
  createFullConsoleScene,
  type FullConsoleScene,
} from '../../fakes/scenes/full-console-scene.ts';
import { addressesOf, consoleRoutes } from '../../fixtures/console-pages.ts';
import { expectFaultsContained, FAULTS } from '../../fixtures/page-visits.ts';

const ROUTES = (await consoleRoutes()).filter(({ audience }) => audience !== 'anyone');
const LASTS_AT_MOST_MS = 2_400_000;

let scene: FullConsoleScene;
beforeAll(async () => {
  scene = await createFullConsoleScene();
});
afterAll(() => scene?.close());

it.concurrent.each(ROUTES)(
  '$path',
  async (route) => {
    for (const address of addressesOf(route, scene.ids)) {
      await expectFaultsContained(scene, address, (calls) =>
        calls.flatMap((call) => FAULTS.map((fault) => [call, fault] as const)),
      );
    }
  },
  LASTS_AT_MOST_MS,
);
