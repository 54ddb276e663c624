/** The pages of validators and operators in a browser, with the records of a real validator. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { createGatewayAgents } from '../../../validator/central/platform/adapters/gateway-agents.ts';
import type { TestAccount } from '../../fakes/scenes/central-fixture.ts';
import { testSigner } from '../../fakes/scenes/market-fixture.ts';
import { createValidatorScene, type ValidatorScene } from '../../fakes/scenes/validator-scene.ts';
import {
  expectAccessible,
  openPage,
  type PageOptions,
  startBrowser,
} from '../../fixtures/browser.ts';
import { buildConsoleIn } from '../../fixtures/built-console.ts';

const UNKNOWN_POD = '00000000-0000-4000-8000-0000000000aa';
const LISTEN = { host: '127.0.0.1', port: 0 };

let folder: string;
let scene: ValidatorScene;
let browser: Browser;
let operator: TestAccount;
let origin: string;
let evidenceId: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-console-'));
  [scene, browser] = await Promise.all([
    createValidatorScene({ overrides: { consoleFolder: folder } }),
    startBrowser(),
    buildConsoleIn(folder),
  ]);
  const { market, validator } = scene;
  origin = new URL(scene.centralUrl).origin;
  const { record } = createGatewayAgents({
    gatewayUrl: await validator.server.listen(LISTEN),
    gatewayHotkey: market.validator.hotkey,
    signer: testSigner(5),
    clock: market.clock,
    random: systemRandom,
  });
  market.agents.record = record;
  operator = await market.signUp();
  await market.setOperator(operator);
  for (let cycle = 0; cycle < 4; cycle += 1) await scene.cycle();
  const row = await scene.store.selectFrom('evidence').select('id').executeTakeFirstOrThrow();
  evidenceId = row.id;
});
afterAll(async () => {
  await browser?.close();
  await scene?.close();
  rmSync(folder, { recursive: true, force: true });
});

function open(options: Pick<PageOptions, 'theme' | 'isPhone'> = {}) {
  const session = { token: operator.token, name: operator.email };
  return openPage(browser, { origin, session, ...options });
}

it('verifies evidence in the browser, and detects a changed byte', async () => {
  const page = await open();
  await page.goto(`/validator/nodes/${scene.node.id}`);
  await page.getByRole('link', { name: '1', exact: true }).click();
  await page.getByText('Verified by this browser against key').waitFor();
  await page.getByText(scene.market.validator.hotkey).first().waitFor();
  expect(page.problems).toEqual([]);
  const changed = await open();
  await changed.route('**/api/operator/validator/evidence/*', async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    await route.fulfill({ response, json: { ...body, document: `${body.document} ` } });
  });
  await changed.goto(`/validator/evidence/${evidenceId}`);
  await changed.getByText('This record is not what the validator signed').waitFor();
});

it('leads from a cycle to the evidence of a verdict', async () => {
  const page = await open();
  await page.goto('/validator');
  await page.getByRole('link', { name: 'Cycles' }).click();
  await page.getByRole('link', { name: '1', exact: true }).click();
  await page.getByRole('combobox', { name: 'Verdict' }).selectOption('failed');
  await page.getByText('No node of this cycle has this verdict').waitFor();
  await page.getByRole('combobox', { name: 'Verdict' }).selectOption('ok');
  await page.getByRole('link', { name: 'Open' }).click();
  await page.getByText('Verified by this browser against key').waitFor();
  expect(page.problems).toEqual([]);
});

it('explains the weight of a node, and keeps a wrong id with its error', async () => {
  const page = await open();
  await page.goto('/validator/epochs');
  await page.getByRole('link', { name: '1', exact: true }).click();
  await page.getByText('Verified by this browser against key').waitFor();
  await page.getByLabel('Id of the node').fill(scene.node.id);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Factors of the points' }).waitFor();
  expect(page.problems).toEqual([]);
  await page.goto('/validator/epochs/1/nodes/no-node');
  await page.getByRole('alert').waitFor();
});

it('bans a provider only with a reason, which stays after an error and is in the audit trail', async () => {
  const page = await open();
  await page.goto('/operator/providers');
  await page.getByRole('button', { name: 'Ban', exact: true }).click();
  const dialog = page.getByRole('alertdialog');
  await dialog.getByRole('button', { name: 'Ban' }).click();
  await dialog.getByRole('alert').waitFor();
  page.problems.length = 0;
  await dialog.getByLabel('Reason').fill('sold <b>one</b> card twice');
  await expectAccessible(page);
  await dialog.getByRole('button', { name: 'Ban' }).click();
  await page.getByRole('button', { name: 'Unban' }).waitFor();
  await page.goto('/operator/audit');
  await page.getByText('sold <b>one</b> card twice').waitFor();
  await page.goto('/operator/providers?banned=true');
  await page.getByRole('button', { name: 'Unban' }).click();
  await dialog.getByLabel('Reason').fill('resolved');
  await dialog.getByRole('button', { name: 'Unban' }).click();
  await page.getByText('No provider matches').waitFor();
  expect(page.problems).toEqual([]);
});

it('starts a proof of the ledger, and shows its result', async () => {
  const page = await open();
  await page.goto('/operator/health');
  await page.getByRole('button', { name: 'Start a proof' }).click();
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await page.getByText('All balances are correct').waitFor();
  expect(page.problems).toEqual([]);
});

it('removes an unknown pod only with a reason, and lists what the sync has found', async () => {
  const { db } = scene.market.ports;
  const found = { executor_id: scene.node.id, pod_id: UNKNOWN_POD };
  const atMs = scene.market.clock.now();
  await db
    .insertInto('unknown_pods')
    .values({
      ...found,
      kind: 'missing',
      generation: 3,
      image: 'image:<b>1</b>',
      gpu_count: 1,
      created_at: atMs,
      found_at: atMs,
      remove_requested_at: null,
    })
    .execute();
  await db
    .insertInto('drift')
    .values({ ...found, kind: 'pod_unknown', at_ms: atMs })
    .execute();
  const page = await open();
  await page.goto('/operator/differences');
  await page.getByText('image:<b>1</b> · 1 GPU').waitFor();
  await page.getByText('needs a decision').waitFor();
  await page.getByText('It cannot be adopted').waitFor();
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Remove' }).click();
  const dialog = page.getByRole('alertdialog');
  await dialog.getByRole('button', { name: 'Remove' }).click();
  await dialog.getByRole('alert').waitFor();
  page.problems.length = 0;
  await dialog.getByLabel('Reason').fill('a copy of yesterday');
  await dialog.getByRole('button', { name: 'Remove' }).click();
  await page.getByText('The node was requested to remove it').waitFor();
  expect(page.problems).toEqual([]);
});

it('finds an account with Ctrl-K by keyboard alone', async () => {
  const page = await open();
  await page.goto('/operator/audit');
  await page.getByRole('heading', { name: 'Audit trail' }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog', { name: 'Search' }).waitFor();
  await page.keyboard.type(operator.email);
  await page.getByRole('option', { name: operator.email }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Account', exact: true, level: 1 }).waitFor();
  expect(page.problems).toEqual([]);
});

it('an answer 500 disables only its panel', async () => {
  const page = await open();
  await page.route('**/epochs/1/weights*', (route) =>
    route.fulfill({ status: 500, json: { code: 'internal_error', detail: 'It failed', hint: '' } }),
  );
  await page.goto('/validator/epochs/1');
  await page.getByText('internal_error').waitFor();
  await page.getByText('Verified by this browser against key').waitFor();
});
