/** Ways to use the controls of a page: with the mouse, or with the keyboard alone. */
import type { Locator } from 'playwright-core';
import { expect } from 'vitest';
import type { ConsolePage } from '../../fixtures/browser.ts';

export type Hand = {
  /** Activates a link, a button or a summary. */
  press(control: Locator): Promise<void>;
  /** Replaces the text of a field. */
  fill(field: Locator, text: string): Promise<void>;
  /** Moves the focus into a terminal, and out of it. */
  enterTerminal(): Promise<void>;
  leaveTerminal(): Promise<void>;
};

export function mouseHand(page: ConsolePage): Hand {
  return {
    press: (control) => control.click(),
    fill: (field, text) => field.fill(text),
    enterTerminal: () => page.locator('.terminal-screen').click(),
    leaveTerminal: () => Promise.resolve(),
  };
}

/** Controls of a page, and the end of the page twice. */
const MAX_TABS = 400;
/** An outline of at least one pixel, around the control or, for a terminal, around its frame. */
const SHOWS_FOCUS = `(() => {
  const frame = document.activeElement.closest('.terminal-screen') ?? document.activeElement;
  const { outlineStyle, outlineWidth } = getComputedStyle(frame);
  return outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1;
})()`;

/** Uses only `page.keyboard`, and requires that each control that it uses shows its focus. */
export function keyboardHand(page: ConsolePage): Hand {
  const hasFocus = async (control: Locator) =>
    (await control.count()) > 0 &&
    (await control.first().evaluate((element) => element.matches(':focus')));
  async function reach(control: Locator): Promise<void> {
    await control.first().waitFor({ state: 'attached' });
    for (let tabs = 0; !(await hasFocus(control)); tabs += 1) {
      if (tabs === MAX_TABS) throw new Error(`Tab does not reach ${control}`);
      await page.keyboard.press('Tab');
    }
    expect([String(control), await page.evaluate(SHOWS_FOCUS)]).toEqual([String(control), true]);
  }
  return {
    async press(control) {
      await reach(control);
      await page.keyboard.press('Enter');
    },
    async fill(field, text) {
      await reach(field);
      await page.keyboard.press('Control+a');
      await page.keyboard.type(text);
    },
    enterTerminal: () => reach(page.locator('.xterm-helper-textarea')),
    // Tab belongs to the shell.
    leaveTerminal: () => page.keyboard.press('Control+F6'),
  };
}
