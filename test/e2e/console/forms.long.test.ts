/** Typed input survives a failing answer, a dropped connection and an expired session, in all forms of the console. */
import { afterAll, beforeAll, it } from 'vitest';
import {
  createFullConsoleScene,
  type FullConsoleScene,
} from '../../fakes/scenes/full-console-scene.ts';
import { CONSOLE_FORMS } from '../../fixtures/console-forms.ts';
import { expectInputSurvives } from '../../fixtures/form-survival.ts';

let scene: FullConsoleScene;
beforeAll(async () => {
  scene = await createFullConsoleScene();
});
afterAll(() => scene?.close());

it.concurrent.each(CONSOLE_FORMS)('%s', (_, of) => expectInputSurvives(scene, of(scene.ids)));
