/** The page of the test clock in a browser, against a simulated market: advance, pause, speed, faults, time of the console. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { createLog } from '#shared/runtime/log.ts';
import { changeOperatorRole } from '../../../validator/central/accounts/account/operator-role.service.ts';
import { type LiveMarket, startLiveMarket } from '../../../validator/simulate/live/live-market.ts';
import { DEFAULT_POLICY_FILE, readWeightPolicy } from '../../../validator/weights/weight-policy.ts';
import { eventually } from '../../fakes/eventually.ts';
import { freePorts } from '../../fakes/free-ports.ts';
import { busyScenario } from '../../fakes/scenes/small-simulation.ts';
import { type ConsolePage, openPage, settle, startBrowser } from '../../fixtures/browser.ts';
import { buildConsoleIn } from '../../fixtures/built-console.ts';

const ACCOUNT = { email: 'operator@example.com', password: 'correct horse battery' };
const HOST = '127.0.0.1';

let folder: string;
let browser: Browser;
let market: LiveMarket;
let page: ConsolePage;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-console-'));
  const { first: port } = await freePorts(1);
  await buildConsoleIn(folder);
  browser = await startBrowser();
  market = await startLiveMarket({
    scenario: { ...busyScenario(), host_faults: {} },
    seed: 7,
    providers: 3,
    renters: 3,
    weightPolicy: readWeightPolicy(DEFAULT_POLICY_FILE),
    listen: { host: HOST, port },
    names: { host: '--host', port: '--port' },
    consoleFolder: folder,
    log: createLog({ name: 'test', level: 'silent' }),
  });
  const origin = `http://${HOST}:${port}`;
  const token = await logIn(origin);
  page = await openPage(browser, { origin, session: { token, name: ACCOUNT.email } });
});
afterAll(async () => {
  await browser?.close();
  await market?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Signs up an operator. */
async function logIn(origin: string): Promise<string> {
  const post = (path: string) =>
    fetch(`${origin}/api${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(ACCOUNT),
    });
  expect((await post('/users')).status).toBe(200);
  const { clock, db } = market.world;
  const role = { email: ACCOUNT.email, isOperator: true, reason: 'test', operator: 'test' };
  await db.transaction().execute((tx) => changeOperatorRole(tx, { clock }, role));
  const answer = await (await post('/users/login')).json();
  return z.object({ token: z.string() }).parse(answer).token;
}

const panel = (title: string) => page.locator('section.panel', { hasText: title }).first();
const button = (name: string) => page.getByRole('button', { name, exact: true });
const passedMs = () => market.control.state().nowMs - market.control.state().startedMs;

it('is in the navigation, and advances the clock', async () => {
  await page.goto('/');
  await page.getByRole('link', { name: 'Test clock' }).click();
  await panel('Clock').getByText('Paused').waitFor();
  await button('Advance 6 h').click();
  await panel('Clock').getByText('6 h', { exact: true }).waitFor();
  await panel('Clock').getByText('Paused').waitFor();
  expect(passedMs()).toBe(6 * 3_600_000);
  await panel('Latest events').getByText('Rented').first().waitFor();
});

it('lets time pass until it is paused', async () => {
  await page.getByLabel('Speed').selectOption('3600');
  await button('Let time pass').click();
  await panel('Clock').getByText('Running').waitFor();
  await eventually('a step of simulated time', () => passedMs() > 6 * 3_600_000);
  await button('Pause').click();
  await panel('Clock').getByText('Paused').waitFor();
  expect(passedMs()).toBeGreaterThan(6 * 3_600_000);
});

it('begins a fault of a node, and shows it until its end', async () => {
  await page.getByLabel('Node').selectOption({ index: 1 });
  await page.getByLabel('Duration').fill('30');
  await button('Begin the fault').click();
  await panel('Active faults').getByText('A node is down and loses its pods').waitFor();
  await button('Begin the fault').click();
  await page.getByRole('alert').getByText('conflict').waitFor();
  page.problems.length = 0;
  await button('Advance 1 h').click();
  await panel('Active faults').getByText('No fault lasts now').waitFor();
});

it('ends a fault before its time', async () => {
  await page.getByLabel('Node').selectOption({ index: 1 });
  await page.getByLabel('Duration').fill('600');
  await button('Begin the fault').click();
  await panel('Active faults').getByText('A node is down and loses its pods').waitFor();
  await button('End now').click();
  await panel('Active faults').getByText('No fault lasts now').waitFor();
  await panel('Latest events').getByText('Fault ended').first().waitFor();
});

it('explains the end of an advance during which the wall clock jumped', async () => {
  await page.getByRole('combobox', { name: 'Fault', exact: true }).selectOption('clock');
  await page.getByLabel('Jump').fill('-600');
  await button('Begin the fault').click();
  await button('Advance 1 h').click();
  await panel('Latest events').getByText('back by 10 min').waitFor();
  await panel('Clock').getByText('Paused').waitFor();
  await panel('Clock').getByText('A fault set the wall clock back by 10 min').waitFor();
  const text = await panel('Latest events').innerText();
  expect(text).not.toMatch(/uusd|[0-9a-f]{8}-[0-9a-f]{4}/i);
  expect(await panel('Latest events').getByRole('link').first().innerText()).toMatch(
    /^[a-z]+-[a-z]+-[0-9a-f]{2}$/,
  );
});

it('names the field of a wrong value by its label, whatever the API calls it', async () => {
  await page.goto('/operator/clock');
  await settle(page);
  await page.getByLabel('Node').selectOption({ index: 1 });
  await page.getByLabel('Duration').fill('-3');
  await button('Begin the fault').click();
  const notice = page.getByRole('alert').filter({ hasText: 'validation_error' });
  await notice.getByText('Correct the marked field: “Duration (minutes)”.').waitFor();
  expect(await page.getByLabel('Duration').getAttribute('aria-invalid')).toBe('true');
  expect(await page.locator('main').innerText()).not.toContain('lasts_minutes');
  page.problems.length = 0;
});

it('does not claim that the clock advances when the server does not answer', async () => {
  await page.route('**/api/_local/clock', (route) => route.abort());
  await panel('Clock').getByText('unreachable').waitFor();
  await panel('Clock').getByText('Unknown: the server does not answer').waitFor();
  expect(await panel('Clock').getByText('Paused').count()).toBe(0);
  await page.unroute('**/api/_local/clock');
  await panel('Clock').getByRole('button', { name: 'Try again' }).click();
  await panel('Clock').getByText('Paused').waitFor();
  page.problems.length = 0;
});

it('marks the nodes of the market as simulated', async () => {
  await page.goto('/market');
  await page.getByRole('table', { name: 'Nodes' }).getByText('simulated').first().waitFor();
});

it('shows times relative to the simulated time', async () => {
  await page.goto('/operator');
  await settle(page);
  const texts = await page.locator('main time').allInnerTexts();
  expect(texts.length).toBeGreaterThan(0);
  expect(texts.filter((text) => /\d+ d/.test(text))).toEqual([]);
  expect(page.problems).toEqual([]);
});
