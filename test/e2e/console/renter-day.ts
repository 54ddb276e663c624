/** Steps of a renter's day, with a real pod on the Docker engine and real backups. */
import { expect } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { createSshKeyPair } from '#shared/signing/openssh-key.ts';
import { type ConsolePage, settled } from '../../fixtures/browser.ts';
import { mailedToken } from './console-run.ts';
import type { Hand } from './hands.ts';

/** Lines that the pod writes at once. */
const LINES = 20_000;
/** Metrics and charges are collected once a minute; backups and restores take their time on a busy host. */
const SLOW_MS = 120_000;
/** These continue when the terminal, and with it its shell, ends. */
const BUSY = 'setsid timeout 300 sh -c "while :; do :; done" &';
const WRITE = `setsid timeout 120 sh -c "sleep 5; seq ${LINES}; while sleep 1; do echo all-written; done" > /proc/1/fd/1 &`;

/** Runs the whole day in a page without a session. The account has not signed up. */
export async function renterDay(page: ConsolePage, hand: Hand, email: string): Promise<void> {
  const pod = podOf(email);
  await signUp(page, hand, email);
  await setTopUp(page, hand);
  await rentPod(page, hand, pod);
  await typeInTerminal(page, hand);
  await followLogs(page, hand);
  await backUp(page, hand);
  await watchMetrics(page, hand);
  await restore(page, hand);
  await expectTopUp(page, hand);
  await deletePod(page, hand, pod);
  await readStatement(page, hand, pod);
}

/** The day without what takes minutes: metrics, backups and the top-up. */
export async function shortRenterDay(page: ConsolePage, hand: Hand, email: string): Promise<void> {
  const pod = podOf(email);
  await signUp(page, hand, email);
  await rentPod(page, hand, pod);
  await typeInTerminal(page, hand);
  await followLogs(page, hand);
  await deletePod(page, hand, pod);
  await readStatement(page, hand, pod);
}

const podOf = (email: string) => `pod <b>${email}</b>`;

async function signUp(page: ConsolePage, hand: Hand, email: string): Promise<void> {
  await page.goto('/');
  await settled(page, 'Log in');
  await hand.press(page.getByRole('link', { name: 'Create an account' }));
  await hand.fill(page.getByLabel('E-mail'), email);
  await hand.fill(page.getByLabel('Password'), 'correct horse');
  await hand.press(page.getByRole('button', { name: 'Create the account' }));
  await settled(page, 'Welcome');
  await hand.press(page.getByRole('button', { name: 'Continue' }));
  await settled(page, 'Home');
  await page.goto(`/verify-email?token=${await mailedToken(email, 'verify-email')}`);
  await hand.press(page.getByRole('button', { name: 'Confirm the address' }));
  await hand.press(page.getByRole('link', { name: 'Continue' }));
  await page.getByText('$1,000.00').first().waitFor();
}

/** The local marketplace charges a simulated payment method. */
async function setTopUp(page: ConsolePage, hand: Hand): Promise<void> {
  await hand.press(page.getByRole('link', { name: 'Money' }));
  await settled(page, 'Money');
  await hand.fill(page.getByLabel('Payment method'), 'sim_ok');
  await hand.fill(page.getByLabel('Charge below a balance of'), '2000');
  await hand.fill(page.getByLabel('Amount of a charge'), '70');
  await hand.press(page.getByRole('button', { name: 'Save the auto top-up' }));
  await page.getByText('The auto top-up is saved.').waitFor();
}

async function rentPod(page: ConsolePage, hand: Hand, pod: string): Promise<void> {
  await hand.press(page.getByRole('link', { name: 'Market', exact: true }));
  await settled(page, 'Market');
  await hand.press(page.getByRole('link', { name: /^Rent \w+-/ }).first());
  await settled(page, 'Rent a pod');
  await hand.press(page.getByRole('button', { name: 'Add an SSH key' }));
  await hand.fill(page.getByLabel('Name of the key'), 'laptop');
  const { publicKey } = createSshKeyPair(systemRandom, 'laptop');
  await hand.fill(page.getByLabel('Public key'), publicKey);
  await hand.press(page.getByRole('button', { name: 'Add the key' }));
  await page.getByRole('checkbox', { name: 'laptop' }).waitFor();
  await hand.fill(page.getByLabel('Name', { exact: true }), pod);
  expect(await page.getByRole('radio', { name: /^Podwright base/ }).isChecked()).toBe(true);
  await page.getByText('First hour', { exact: true }).waitFor();
  await hand.press(page.getByRole('button', { name: 'Rent the pod', exact: true }));
  await settled(page, pod);
  await page.getByText('Log in over SSH').waitFor();
}

async function openTab(page: ConsolePage, hand: Hand, tab: string): Promise<void> {
  await hand.press(page.getByRole('navigation', { name: 'Pod' }).getByRole('link', { name: tab }));
}

/** Types a command into the terminal, which has the focus, and waits for its output. */
async function shell(page: ConsolePage, line: string, output: string): Promise<void> {
  await page.keyboard.type(line);
  await page.keyboard.press('Enter');
  await page.locator('.xterm-rows').getByText(output).first().waitFor();
}

async function typeInTerminal(page: ConsolePage, hand: Hand): Promise<void> {
  await openTab(page, hand, 'Terminal');
  await page.getByText('Connected.').waitFor();
  await hand.enterTerminal();
  await shell(page, 'echo kept > /workspace/kept.txt; echo $((6 * 7))-saved', '42-saved');
  // The load of simulated GPUs follows the processors of the pod.
  await shell(page, `${BUSY} echo $((6 * 8))-busy`, '48-busy');
}

/** Lets the pod write lines while the view follows its log. */
async function followLogs(page: ConsolePage, hand: Hand): Promise<void> {
  await shell(page, `${WRITE} echo $((6 * 9))-writes`, '54-writes');
  await hand.leaveTerminal();
  await openTab(page, hand, 'Logs');
  await page.getByText('Connected.').waitFor();
  await page.getByText('all-written').first().waitFor();
}

async function backUp(page: ConsolePage, hand: Hand): Promise<void> {
  await openTab(page, hand, 'Backups');
  await hand.press(page.getByRole('button', { name: 'New backup' }));
  await hand.fill(page.getByLabel('Name'), 'first');
  await hand.press(page.getByRole('dialog').getByRole('button', { name: 'Back up' }));
  const row = page.getByRole('row').filter({ hasText: 'first' });
  await row.getByText('Completed').waitFor({ timeout: SLOW_MS });
}

/** Waits until the load of the pod is in the charts. */
async function watchMetrics(page: ConsolePage, hand: Hand): Promise<void> {
  await openTab(page, hand, 'Metrics');
  await page
    .getByText(/simulated/i)
    .first()
    .waitFor({ timeout: SLOW_MS });
  await page
    .getByText(/: [\d.]+ % now, between 0 and (?:[5-9]|\d\d)/)
    .first()
    .waitFor({ state: 'attached', timeout: SLOW_MS });
}

async function restore(page: ConsolePage, hand: Hand): Promise<void> {
  await openTab(page, hand, 'Terminal');
  await page.getByText('Connected.').waitFor();
  await hand.enterTerminal();
  await shell(page, 'rm /workspace/kept.txt; echo $((7 * 7))-removed', '49-removed');
  await hand.leaveTerminal();
  await openTab(page, hand, 'Backups');
  await hand.press(page.getByRole('button', { name: 'Restore', exact: true }));
  await hand.press(page.getByRole('dialog').getByRole('button', { name: 'Restore' }));
  await page.getByText('The restore has started.').waitFor();
  const restores = page.getByRole('table', { name: 'Restores' });
  await restores.getByText('Completed').waitFor({ timeout: SLOW_MS });
  await openTab(page, hand, 'Terminal');
  await page.getByText('Connected.').waitFor();
  await hand.enterTerminal();
  await shell(page, 'cat /workspace/kept.txt | tr a-z A-Z', 'KEPT');
  await hand.leaveTerminal();
}

async function expectTopUp(page: ConsolePage, hand: Hand): Promise<void> {
  await hand.press(page.getByRole('link', { name: 'Money' }));
  await page.getByRole('cell', { name: '$70.00' }).first().waitFor({ timeout: SLOW_MS });
}

async function deletePod(page: ConsolePage, hand: Hand, pod: string): Promise<void> {
  await hand.press(page.getByRole('link', { name: 'Pods', exact: true }));
  await hand.press(page.getByRole('link', { name: pod }));
  await hand.press(page.getByRole('button', { name: 'Delete', exact: true }));
  await hand.press(page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }));
  await settled(page, 'Pods');
}

async function readStatement(page: ConsolePage, hand: Hand, pod: string): Promise<void> {
  await hand.press(page.getByRole('link', { name: pod }));
  await page.getByText('Deleted').first().waitFor();
  await openTab(page, hand, 'Cost');
  await hand.press(page.locator('summary', { hasText: 'metered interval' }).first());
  await page.getByRole('table', { name: 'Metered intervals' }).first().waitFor();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    hand.press(page.getByRole('button', { name: 'Download CSV' })),
  ]);
  expect(download.suggestedFilename()).toMatch(/^statement-.*\.csv$/);
}
