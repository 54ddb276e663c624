/** The renter's day without a mouse, in the console of `npm start`. */
import { expect, it } from 'vitest';
import { runConsole } from './console-run.ts';
import { keyboardHand } from './hands.ts';
import { renterDay } from './renter-day.ts';

const { open } = runConsole();

it('a renter does everything with the keyboard, and sees the focus of each control', {
  timeout: 900_000,
}, async () => {
  const page = await open();
  await renterDay(page, keyboardHand(page), 'keys@example.com');
  expect(page.problems).toEqual([]);
  await page.context().close();
});
