/** The tabs of a pod in a browser, against a real central API and a fake agent. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFakeSamples } from '../../fakes/agents/fake-samples.ts';
import { createFakeBackupStorage } from '../../fakes/external/fake-backup-storage.ts';
import type { TestAccount } from '../../fakes/scenes/central-fixture.ts';
import { type ConsoleScene, createConsoleScene } from '../../fakes/scenes/console-scene.ts';
import { type ConsolePage, expectAccessible } from '../../fixtures/browser.ts';

const POD_NAME = '<i>trainer</i>';
/** Samples of an agent, of which there is one every 10 seconds. */
const SAMPLES = 60;

let scene: ConsoleScene;
let account: TestAccount;
let host: ReturnType<ConsoleScene['market']['agents']['host']>;
let nodeId: string;
let podId: string;
let deletedId: string;
beforeAll(async () => {
  const storage = createFakeBackupStorage();
  scene = await createConsoleScene({ backupStorage: storage, pruneBackups: storage.prune });
  const { market } = scene;
  account = await market.renter();
  const node = await market.verifiedNode({ gpus: 2, minimum: 1 });
  nodeId = node.id;
  host = market.agents.host(nodeId);
  podId = await rent(nodeId, POD_NAME);
  deletedId = await rent(nodeId, 'gone');
  await market.clock.advance(120_000);
  await call('DELETE', `/pods/${deletedId}`);
  await market.sync();
  await measure();
});
afterAll(() => scene?.close());

async function rent(at: string, pod_name: string): Promise<string> {
  const { body } = await scene.market.rent(account, at, { pod_name, gpu_count: 1 });
  await scene.market.sync();
  return body.id;
}

function call(method: 'GET' | 'POST' | 'DELETE', path: string) {
  return scene.market.call(method, path, { headers: account.key });
}

/** Measures the pod for ten minutes, with a gap of two minutes. */
async function measure(): Promise<void> {
  const { market } = scene;
  const samples = createFakeSamples(market.clock);
  host.sampleHistory = samples.answer;
  const gpu = host.specs.get(podId)?.gpu_uuids?.[0] ?? '';
  const load = (percent: number) => ({
    podId,
    cpu_percent: percent,
    ram_percent: 20,
    rx_bytes_per_second: 2_000_000,
    gpus: { [gpu]: { gpu_percent: percent, gpu_memory_percent: 40, temperature_c: 61 } },
  });
  await samples.run(SAMPLES, (at) => (at >= 20 && at < 32 ? [{}] : [{}, load(at)]));
  await market.central.collectMetrics();
}

/** Lets the market's clock advance, and the node's state reach the market. */
async function later(): Promise<void> {
  await scene.market.clock.advance(2_000);
  await scene.market.sync();
}

const addressOf = (tab: string) => `/pods/${podId}${tab === 'overview' ? '' : `/${tab}`}`;

async function openTab(tab: string): Promise<ConsolePage> {
  const page = await scene.open({ account });
  await page.goto(addressOf(tab));
  return page;
}

it('shows the history in charts, with its gap, the choice of a GPU and a text for screen readers', async () => {
  const page = await openTab('metrics');
  await page.locator('.charts canvas').first().waitFor();
  await page.getByText('One period without measurements').waitFor();
  await page.getByText('for 2 min').waitFor();
  await page.getByText('GPU use').waitFor();
  expect(await page.getByText('simulated').count()).toBeGreaterThan(0);
  expect(await page.locator('.charts').innerText()).toContain('MiB/s');
  await page
    .getByText(/Mean: 59 % now, between 0 and 59\./)
    .first()
    .waitFor({ state: 'attached' });
  await page.getByRole('combobox', { name: 'GPU', exact: true }).selectOption('0');
  await page
    .getByText(/^GPU 0: 59 % now/)
    .first()
    .waitFor({ state: 'attached' });
  await page.getByRole('combobox', { name: 'Range' }).selectOption('3h');
  await page.getByText('One value per 1 min').waitFor();
  expect(new URL(page.url()).search).toBe('?gpu=0&range=3h');
  // The chart copies the colours of the theme, and follows a change of it.
  const colours = () =>
    page.evaluate(`[...document.querySelectorAll('.charts .u-marker')]
      .map((marker) => marker.style.borderColor).filter((colour) => colour !== '').join()`);
  const light = await colours();
  expect(light).toMatch(/rgb/);
  await page.getByLabel('Theme').selectOption('dark');
  await expect.poll(colours).not.toBe(light);
  await expect.poll(colours).toMatch(/^rgb/);
  expect(page.problems).toEqual([]);
});

it('makes a backup, shows its progress, verifies it and restores it', async () => {
  const page = await openTab('backups');
  await page.getByText('There are no backups of this pod').waitFor();
  await page.getByRole('button', { name: 'New backup' }).click();
  await page.getByLabel('Name').fill('before <b>training</b>');
  await page.getByRole('dialog').getByRole('button', { name: 'Back up' }).click();
  await page.getByRole('rowheader', { name: 'before <b>training</b>' }).waitFor();
  const { body } = await call('GET', `/backup-logs/pod/${podId}`);
  const backupId = body.items[0].id;
  await later();
  host.operations.progress(backupId, { stage: 'uploading', percent: 40, processed_files: 7 });
  await later();
  await page.getByText('40 %').waitFor();
  await page.getByText('7 files').waitFor();
  await expectAccessible(page);
  host.operations.finish(backupId);
  await later();
  await page.getByText('Completed').waitFor();
  // The name of the folder is in one line.
  const lines = `(() => {
    const path = document.querySelector('table code.path');
    return path.offsetHeight / parseFloat(getComputedStyle(path).lineHeight);
  })()`;
  expect(await page.evaluate(lines)).toBeLessThan(1.5);

  await page.getByRole('button', { name: 'Restore', exact: true }).click();
  const folder = page.getByLabel('Folder in the pod');
  await folder.fill('relative');
  await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
  await page.getByRole('dialog').getByRole('alert').waitFor();
  expect(await folder.inputValue()).toBe('relative');
  await expectAccessible(page);
  page.problems.length = 0;
  await folder.fill('/root/restored');
  await page.getByLabel('Salvage a damaged backup').check();
  await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
  await page.getByText('The restore has started.').waitFor();
  await later();
  const restores = (await call('GET', `/pods/${podId}/restore-logs`)).body.items;
  const lost_files = { count: 1, paths: ['/root/restored/a'] };
  host.operations.progress(restores[0].id, { lost_files, restarts_pod: false });
  host.operations.finish(restores[0].id);
  await later();
  await page.getByText('1 path could not be restored').waitFor();

  await page.getByRole('button', { name: 'Verify' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Verify' }).click();
  await page.getByText('A test restore runs').waitFor();
  expect(page.problems).toEqual([]);
});

it('adds and deletes a backup schedule', async () => {
  const page = await openTab('backups');
  await page.getByLabel('Interval').fill('6');
  await page.getByRole('button', { name: 'Add the schedule' }).click();
  await page.getByText('every 6 h').waitFor();
  await page.getByRole('button', { name: 'Delete the schedule' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Add the schedule' }).waitFor();
  expect(page.problems).toEqual([]);
});

it('shows events as they happen, with their cause, and the statement with its intervals as CSV', async () => {
  const page = await openTab('events');
  await page.getByText('The pod runs', { exact: true }).waitFor();
  await page.getByText('Pod rented', { exact: true }).waitFor();
  expect(await page.locator('.timeline').innerText()).not.toMatch(/lifecycle|user_initiated/i);
  await page.getByText('Restart requested').waitFor({ state: 'detached' });
  await call('POST', `/pods/${podId}/reboot`);
  await page.getByText('Restart requested').waitFor();
  await later();
  host.change(podId, { phase: 'running', reboots_done: 1 });
  await later();
  await page.getByRole('link', { name: 'Cost' }).click();
  await page
    .getByText(/metered interval/)
    .first()
    .click();
  await page.getByRole('table', { name: 'Metered intervals' }).first().waitFor();
  await expectAccessible(page);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download CSV' }).click(),
  ]);
  expect(download.suggestedFilename()).toBe(`statement-${podId}.csv`);
  expect(page.problems).toEqual([]);
});

it('edits the environment, after a malformed line was corrected', async () => {
  const page = await openTab('settings');
  await page.getByRole('button', { name: 'Edit environment' }).click();
  const environment = page.getByLabel('Environment');
  await environment.fill('A');
  await page.getByRole('button', { name: 'Save and restart' }).click();
  await page.getByText('Line 1 is not NAME=value.').waitFor();
  await page.getByText(/all files/).waitFor();
  await environment.fill('A=1 <2>');
  await page.getByRole('button', { name: 'Save and restart' }).click();
  await page.getByText('The change is saved. The container restarts.').waitFor();
  await later();
  expect(host.specs.get(podId)?.environment).toEqual({ A: '1 <2>' });
  expect(page.problems).toEqual([]);
});

it('schedules a removal and cancels it', async () => {
  const page = await openTab('settings');
  await page.getByLabel('Remove in').fill('2');
  await page.getByRole('button', { name: 'Schedule', exact: true }).click();
  await page.getByText('The removal is scheduled.').waitFor();
  await page.getByRole('button', { name: 'Cancel the removal' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel the removal' }).click();
  await page.getByText('The removal is cancelled.').waitFor();
  expect(page.problems).toEqual([]);
});

it('deletes a pod from one of its tabs, and leads to the list without a failed request', async () => {
  const shortId = await rent(nodeId, 'short');
  const page = await scene.open({ account });
  await page.goto(`/pods/${shortId}/backups`);
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('heading', { name: 'Pods', level: 1 }).waitFor();
  await later();
  await page.goto(`/pods/${shortId}`);
  await page.getByText('Deleted').first().waitFor();
  await expect.poll(() => page.getByText('Loading …').count()).toBe(0);
  expect(page.problems).toEqual([]);
});

it('keeps the page of a deleted pod, which the list of deleted pods links to', async () => {
  const page = await scene.open({ account });
  await page.goto('/pods');
  await page.getByRole('link', { name: 'gone' }).click();
  await page.getByText('Deleted').first().waitFor();
  expect(await page.getByRole('button', { name: 'Restart' }).count()).toBe(0);
  await page.getByRole('heading', { name: 'The pod is deleted' }).waitFor();
  await page.getByRole('link', { name: 'Statement', exact: true }).first().waitFor();
  expect(await page.getByText(/known_hosts|ssh root@/).count()).toBe(0);
  expect(await page.getByRole('table', { name: 'Ports' }).count()).toBe(0);
  for (const tab of ['Metrics', 'Backups', 'Events', 'Cost', 'Settings']) {
    await page.getByRole('link', { name: tab, exact: true }).click();
    await expect.poll(() => page.getByText('Loading …').count()).toBe(0);
    await expectAccessible(page);
  }
  await page.getByText('nothing of it can be changed').waitFor();
  expect(page.problems).toEqual([]);
});

it('keeps a pod in one of the lists while its node removes it', async () => {
  host.removesAtOnce = false;
  const id = await rent(nodeId, 'leaving');
  const page = await scene.open({ account });
  await page.goto('/pods');
  const row = page.getByRole('table', { name: 'Pods', exact: true }).getByRole('row');
  await row.filter({ hasText: 'leaving' }).getByRole('button', { name: 'Delete' }).waitFor();
  await page.evaluate(`(() => {
    const main = document.querySelector('main');
    window.absent = 0;
    new MutationObserver(() => {
      if (!main.innerText.includes('leaving')) window.absent += 1;
    }).observe(main, { childList: true, subtree: true, characterData: true });
  })()`);
  await row.filter({ hasText: 'leaving' }).getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click();
  await row.filter({ hasText: 'leaving' }).getByText('Deleting').waitFor();
  await later();
  host.pods.delete(id);
  await later();
  await later();
  host.removesAtOnce = true;
  const deleted = page.getByRole('table', { name: 'Deleted pods' });
  await deleted.getByRole('link', { name: 'leaving' }).waitFor();
  await row.filter({ hasText: 'leaving' }).waitFor({ state: 'detached' });
  expect(await page.evaluate('window.absent')).toBe(0);
  expect(page.problems).toEqual([]);
});

it.each([
  ['a failing answer', { status: 500, json: { code: 'internal_error', detail: 'It failed' } }],
  ['a malformed answer', { body: '{"lines":', contentType: 'application/json' }],
  ['an answer of another form', { json: { lines: 3 } }],
  ['a dropped connection', null],
])('%s disables only the statement', async (_, answer) => {
  const page = await scene.open({ account });
  await page.route('**/statement', (route) =>
    answer === null ? route.abort('connectionreset') : route.fulfill(answer),
  );
  await page.goto(`/pods/${podId}/cost`);
  await page.getByRole('alert').waitFor();
  await page.getByRole('link', { name: 'Events', exact: true }).click();
  await page.getByText('The pod runs', { exact: true }).waitFor();
  await page.unroute('**/statement');
});
