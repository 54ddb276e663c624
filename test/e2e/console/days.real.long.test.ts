/** The days of a renter, a provider and an operator in the console of `npm start`, with real agents and pods. */
import { expect, it } from 'vitest';
import { toHex } from '#shared/signing/sr25519.ts';
import { type ConsolePage, settled } from '../../fixtures/browser.ts';
import { api } from '../api.ts';
import { demo } from '../marketplace-scene.ts';
import { becomeOperator, demoSession, providerSigner, runConsole } from './console-run.ts';
import { mouseHand } from './hands.ts';
import { renterDay } from './renter-day.ts';

/** Cycles, checks and statements come once a minute. */
const SLOW_MS = 150_000;
const DAY_MS = 600_000;
const EMAIL = 'day@example.com';

const { open } = runConsole();

it('a renter signs up, rents, follows logs, types, watches metrics, restores, deletes and reads the statement', {
  timeout: DAY_MS,
}, async () => {
  const page = await open();
  await renterDay(page, mouseHand(page), EMAIL);
  expect(page.problems).toEqual([]);
  await page.context().close();
});

it('a provider logs in, adds a node, reads its checks, changes a price, and sees earnings and requests', {
  timeout: DAY_MS,
}, async () => {
  const request = { gpu_class: 'NVIDIA L4', gpu_count: 8, notes: 'for <i>training</i>' };
  expect((await api(demo(), 'POST', '/machine-requests', request)).status).toBeLessThan(300);
  const page = await open();
  await logInAsProvider(page);
  await addNode(page);
  await readVerifiedNode(page);
  await changePrice(page);
  const pages = page.getByRole('navigation', { name: 'Pages' });
  await pages.getByRole('link', { name: 'Machine requests' }).click();
  await page.getByText('for <i>training</i>').waitFor();
  await expectRowsOf(page, 'Earnings', 'Earnings by node');
  expect(page.problems).toEqual([]);
  await page.context().close();
});

async function logInAsProvider(page: ConsolePage): Promise<void> {
  await page.goto('/provider');
  await settled(page, 'Log in as a provider');
  const form = page.locator('form').filter({ hasText: 'Message to sign' });
  const message = (await form.locator('pre').first().textContent()) ?? '';
  const signer = providerSigner();
  await form.getByLabel('Hotkey').fill(signer.hotkey);
  const signature = await signer.sign(new TextEncoder().encode(message));
  await form.getByLabel('Signature').fill(toHex(signature));
  await page.keyboard.press('Enter');
  await settled(page, 'Nodes');
}

/** Adds a node without an agent, and waits until a validator reports what is wrong and how to repair it. */
async function addNode(page: ConsolePage): Promise<void> {
  await page.getByRole('link', { name: 'Add a node' }).first().click();
  await page.getByLabel('GPU', { exact: true }).selectOption('NVIDIA L4');
  await page.getByLabel('IP address').fill('127.0.0.1');
  await page.getByLabel('Port of the agent').fill('9');
  await page.getByText('You receive').waitFor();
  await page.getByRole('button', { name: 'Add the node' }).click();
  await page.getByText('Next steps until renters can rent the node').waitFor();
  const row = page.getByRole('table', { name: 'Checks' }).getByRole('row').nth(1);
  await row.waitFor({ timeout: SLOW_MS });
  await page
    .getByText(/^Measured: .+\. Required: /)
    .first()
    .waitFor();
  await page.getByText('Test it, on the host').first().waitFor();
}

async function readVerifiedNode(page: ConsolePage): Promise<void> {
  await page.getByRole('link', { name: 'Nodes', exact: true }).click();
  await settled(page, 'Nodes');
  const node = demo().executors[0]?.id ?? '';
  await page.locator(`main a[href="/provider/nodes/${node}"]`).first().click();
  await settled(page, /^Node /);
  await page.getByText('Nothing prevents rentals of this node.').waitFor();
  expect(await page.getByRole('row').filter({ hasText: 'passed' }).count()).toBeGreaterThan(5);
}

async function changePrice(page: ConsolePage): Promise<void> {
  await page.getByRole('link', { name: 'Settings' }).click();
  await page.getByText('The market’s prices').waitFor();
  const price = page.getByLabel(/^Price/);
  const raised = (Number(await price.inputValue()) * 1.01).toFixed(4);
  await price.fill(raised);
  await page.getByText('You receive').waitFor();
  await page.getByRole('button', { name: 'Change the price' }).click();
  await page.getByText('The price has been changed.').waitFor();
}

/** Opens a page by its link and waits until its table has a row. The page is loaded again until then. */
async function expectRowsOf(page: ConsolePage, link: string, table: string): Promise<void> {
  await page.getByRole('link', { name: link }).click();
  await settled(page, link);
  await expect
    .poll(
      async () => {
        const rows = await page.getByRole('table', { name: table }).getByRole('row').count();
        if (rows === 0) await page.reload();
        return rows;
      },
      { timeout: SLOW_MS, interval: 2_000 },
    )
    .toBeGreaterThan(1);
}

it('an operator reads verdicts, verifies evidence, explains a weight, compares epochs, refunds and bans', {
  timeout: DAY_MS,
}, async () => {
  await becomeOperator();
  const page = await open({ session: await demoSession() });
  await readEvidence(page);
  await readEpoch(page);
  await page.getByRole('link', { name: 'Releases' }).click();
  await page.getByText('Agents keep their version.').waitFor();
  await page.getByRole('link', { name: 'Fleet' }).click();
  await page.getByText('free GPUs cannot be rented').waitFor();
  await page.getByRole('table', { name: 'Nodes', exact: true }).waitFor();
  await proveLedger(page);
  await page.getByRole('link', { name: 'Differences' }).click();
  await settled(page, 'Differences');
  await page.getByText('The database has all pods of the nodes.').waitFor();
  await refund(page);
  await banAndUnban(page);
  expect(page.problems).toEqual([]);
  await page.context().close();
});

async function readEvidence(page: ConsolePage): Promise<void> {
  await page.goto('/validator');
  await settled(page, 'Validator');
  await page.getByRole('link', { name: 'Cycles' }).click();
  await settled(page, 'Cycles');
  await page.locator('main td a, main th a').first().click();
  await page.getByRole('combobox', { name: 'Verdict' }).selectOption('ok');
  await page.getByRole('link', { name: 'Open' }).first().click();
  await page.getByText('Verified by this browser against key').waitFor();
  await page.getByText(demo().validator.hotkey).first().waitFor();
}

/** The newest epoch has a difference from the previous one, which needs two epochs. */
async function readEpoch(page: ConsolePage): Promise<void> {
  await page.getByRole('link', { name: 'Epochs' }).click();
  await settled(page, 'Epochs');
  const second = page.locator('main').getByRole('link', { name: '2', exact: true });
  await expect
    .poll(
      async () => {
        const isThere = (await second.count()) > 0;
        if (!isThere) await page.reload();
        return isThere;
      },
      { timeout: SLOW_MS, interval: 2_000 },
    )
    .toBe(true);
  await second.click();
  await page.getByText(/differ from epoch 1\./).waitFor();
  await page.getByText('Verified by this browser against key').waitFor();
  await page.getByLabel('Id of the node').fill(demo().executors[0]?.id ?? '');
  await page.getByRole('button', { name: 'Explain' }).click();
  await page.getByRole('table', { name: 'Factors' }).waitFor();
}

async function proveLedger(page: ConsolePage): Promise<void> {
  await page.getByRole('link', { name: 'Health' }).click();
  await page.getByText('Age of the oldest').or(page.getByText('No work is due.')).waitFor();
  await page.getByRole('button', { name: 'Start a proof' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Start' }).click();
  await page.getByText('All balances are correct').waitFor();
}

/** Refunds the pod of the renter's day. */
async function refund(page: ConsolePage): Promise<void> {
  await page.getByRole('link', { name: 'Accounts' }).click();
  await page.getByRole('link', { name: EMAIL }).click();
  await page.getByRole('button', { name: /^Refund / }).click();
  const dialog = page.getByRole('alertdialog');
  await dialog.getByLabel('Reason').fill('a test');
  await dialog.getByRole('button', { name: /^Refund / }).click();
  await page.getByText('Nothing is left to refund.').waitFor();
}

async function banAndUnban(page: ConsolePage): Promise<void> {
  await page.getByRole('link', { name: 'Providers' }).click();
  await page.getByRole('button', { name: 'Ban', exact: true }).click();
  const dialog = page.getByRole('alertdialog');
  await dialog.getByLabel('Reason').fill('sold <b>one</b> card twice');
  await dialog.getByRole('button', { name: 'Ban' }).click();
  await page.getByRole('button', { name: 'Unban' }).click();
  await dialog.getByLabel('Reason').fill('resolved');
  await dialog.getByRole('button', { name: 'Unban' }).click();
  await page.getByRole('button', { name: 'Ban', exact: true }).waitFor();
  await page.getByRole('link', { name: 'Audit trail' }).click();
  await page.getByText('sold <b>one</b> card twice').waitFor();
}
