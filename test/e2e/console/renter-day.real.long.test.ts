/** A short renter's day in the console of `npm start`, with a real pod on the Docker engine. */
import { expect, it } from 'vitest';
import { settled } from '../../fixtures/browser.ts';
import { demo } from '../marketplace-scene.ts';
import { runConsole } from './console-run.ts';
import { mouseHand } from './hands.ts';
import { shortRenterDay } from './renter-day.ts';

const { open } = runConsole();

it('logs in with the printed link, once', async () => {
  const page = await open();
  await page.goto(demo().console_url);
  await settled(page, 'Home');
  await page.getByText(demo().account.email).waitFor();
  expect(page.url()).toBe(new URL('/', demo().console_url).href);
  expect(page.problems).toEqual([]);
  const other = await open();
  await other.goto(demo().console_url);
  await other.getByText('ticket_invalid').waitFor();
});

it('a renter signs up, rents, types, follows the log, deletes and reads the statement', {
  timeout: 300_000,
}, async () => {
  const page = await open();
  await shortRenterDay(page, mouseHand(page), 'short@example.com');
  expect(page.problems).toEqual([]);
  await page.context().close();
});
