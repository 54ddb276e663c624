/**
 * Typed input survives a failing answer, a dropped connection and an expired session, in some forms of the console.
 * forms.long.test.ts has all forms.
 */
import { afterAll, beforeAll, it } from 'vitest';
import {
  createFullConsoleScene,
  type FullConsoleScene,
} from '../../fakes/scenes/full-console-scene.ts';
import { CONSOLE_FORMS } from '../../fixtures/console-forms.ts';
import { expectInputSurvives } from '../../fixtures/form-survival.ts';

/** One form of this number is tested here. */
const SHARE = 4;

let scene: FullConsoleScene;
beforeAll(async () => {
  scene = await createFullConsoleScene();
});
afterAll(() => scene?.close());

it.concurrent.each(CONSOLE_FORMS.filter((_, at) => at % SHARE === 0))('%s', (_, of) =>
  expectInputSurvives(scene, of(scene.ids)),
);
