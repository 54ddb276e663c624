/** Errors of the console in words for people: wrong addresses, lost connections, ended sessions. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  createFullConsoleScene,
  type FullConsoleScene,
} from '../../fakes/scenes/full-console-scene.ts';
import { type ConsolePage, expectAccessible, openPage, settle } from '../../fixtures/browser.ts';
import { DROPPED, EXPIRED, logInAgain, withFault } from '../../fixtures/console-faults.ts';
import { consoleRoutes } from '../../fixtures/console-pages.ts';

/** Words of the API that no page may show. */
const FOR_PROGRAMS =
  /\b(?:GET|POST|PUT|PATCH|DELETE) \/|\b(?:body|path|query)\.\w|X-API-Key|expected/;
const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';

const OBJECT_PATHS = (await consoleRoutes())
  .map(({ path }) => path)
  .filter((path) => path.includes('/:'))
  .map((path) => path.replace('/:tab?', ''));

let scene: FullConsoleScene;
beforeAll(async () => {
  scene = await createFullConsoleScene();
});
afterAll(() => scene?.close());

const open = () => openPage(scene.browser, { origin: scene.origin, ...scene.sessions });
const alertsOf = (page: ConsolePage) => page.locator('main [role=alert]').allInnerTexts();
const retry = (page: ConsolePage) => page.getByRole('button', { name: 'Try again' });

/** Opens an address that names nothing, and returns the link of its only message. */
async function openWrong(page: ConsolePage, address: string) {
  await page.goto(address);
  await settle(page);
  const notice = page.locator('main [role=alert]');
  await notice.first().waitFor();
  const texts = await alertsOf(page);
  expect([address, texts]).toEqual([address, [expect.stringContaining('There is no such ')]]);
  expect(texts[0]).not.toMatch(FOR_PROGRAMS);
  expect(await retry(page).count()).toBe(0);
  return notice.getByRole('link');
}

it.concurrent.each(OBJECT_PATHS)('%s: a wrong id has one message with a link', async (path) => {
  const page = await open();
  const link = await openWrong(page, path.replaceAll(/:\w+/g, 'not-an-id'));
  await expectAccessible(page);
  await link.click();
  await settle(page);
  expect(await alertsOf(page)).toEqual([]);
  await page.context().close();
});

it.concurrent.each([
  `/pods/${UNKNOWN_ID}`,
  `/market/${UNKNOWN_ID}`,
  `/rent?node=${UNKNOWN_ID}`,
  `/webhooks/${UNKNOWN_ID}`,
  `/provider/nodes/${UNKNOWN_ID}`,
])('%s has one message with a link', async (address) => {
  const page = await open();
  await openWrong(page, address);
  await page.context().close();
});

it('names the parts of an address that it ignores, and applies the others', async () => {
  const page = await open();
  await page.goto('/market?page=-4&price_lte=abc&sort=name&gpu_count_gte=1');
  const note = page.locator('main .notice', { hasText: 'This page ignores a part of its address' });
  for (const part of ['page=-4', 'price_lte=abc', 'sort=name'])
    await note.getByText(part).waitFor();
  await settle(page);
  expect(await page.getByLabel('Free GPUs, at least').inputValue()).toBe('1');
  expect(await alertsOf(page)).toEqual([]);
  await page.getByRole('button', { name: 'Show nodes' }).click();
  await note.waitFor({ state: 'detached' });
  expect(new URL(page.url()).search).toBe('?gpu_count_gte=1');
  await page.context().close();
});

it.concurrent.each<[string, (ids: FullConsoleScene['ids']) => string, string[]]>([
  ['logs', () => '/logs?view=x&times=x&output=x', ['view=x', 'times=x', 'output=x']],
  ['pod metrics', ({ podId }) => `/pods/${podId}/metrics?range=x&gpu=x`, ['range=x', 'gpu=x']],
  ['node metrics', (ids) => `/provider/nodes/${ids.nodeId}/metrics?resolution=x`, ['resolution=x']],
  ['cycle', () => '/validator/cycles/1?verdict=x', ['verdict=x']],
  ['fleet', () => '/operator?offer=x&unchecked=61', ['offer=x', 'unchecked=61']],
  ['journal', () => '/money?since=x', ['since=x']],
])(
  'names the choices of the address that the page %s does not have',
  async (_, addressOf, parts) => {
    const page = await open();
    await page.goto(addressOf(scene.ids));
    const note = page.locator('main .notice', {
      hasText: 'This page ignores a part of its address',
    });
    for (const part of parts) await note.getByText(part).first().waitFor();
    expect(await alertsOf(page)).toEqual([]);
    await page.context().close();
  },
);

it('states that typed text stays while the server does not answer, without another button', async () => {
  const page = await open();
  await page.goto('/secrets');
  await settle(page);
  await page.getByLabel('Name').fill('kept');
  await page.getByLabel('Value').fill('typed');
  await withFault(
    page,
    ({ method }) => method !== 'GET',
    DROPPED,
    async () => {
      await page.getByRole('button', { name: 'Set the secret' }).click();
      await page.getByText('What you have typed stays in the form.').waitFor();
      expect(await retry(page).count()).toBe(0);
      expect(await page.getByLabel('Value').inputValue()).toBe('typed');
    },
  );
  await page.context().close();
});

it('reports all lines of a field that cannot be read, at the field', async () => {
  const page = await open();
  await page.goto('/templates/new');
  await settle(page);
  await page.getByLabel('Name').fill('lines');
  await page.getByLabel('Image').first().fill('ubuntu');
  const field = page.getByLabel(/^Environment/);
  await field.fill('A=1\nno variable\n2B=x');
  await page.getByRole('button', { name: 'Create the template' }).click();
  await page.getByText('Line 2 is not NAME=value.').waitFor();
  await page.getByText('Line 3: “2B” is not a name of a variable.').waitFor();
  await page.getByText('Correct the marked field: “Environment”.').waitFor();
  expect(await field.getAttribute('aria-invalid')).toBe('true');
  await page.context().close();
});

it('leaves no error behind when a session has expired and the user has logged in again', async () => {
  const page = await open();
  await page.goto('/webhooks');
  await settle(page);
  await page.getByLabel('Address').fill('http://127.0.0.1:9/other');
  await withFault(
    page,
    () => true,
    EXPIRED,
    async () => {
      await page.getByRole('button', { name: 'Create the webhook' }).click();
      await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
      const texts = await alertsOf(page);
      expect(texts.join('\n')).toContain('Your session has ended');
      expect(texts.join('\n')).not.toMatch(FOR_PROGRAMS);
    },
  );
  await logInAgain(page, scene);
  await settle(page);
  expect(await alertsOf(page)).toEqual([]);
  expect(await page.getByLabel('Address').inputValue()).toBe('http://127.0.0.1:9/other');
  await page.context().close();
});

it('states the rule of its server for addresses of webhooks', async () => {
  const page = await open();
  await page.goto('/webhooks');
  await page.getByText('it must be an address of that computer').waitFor();
  await page.context().close();
});

it('shows a failed ticket in the page that opens instead, until the reader closes it', async () => {
  const page = await open();
  await page.goto('/pods#ticket=used-before');
  await page.locator('main').getByText('This log-in link does not work').waitFor();
  const [title, notice] = await Promise.all(
    ['h1', '[role=alert]'].map((part) => page.locator(`main ${part}`).boundingBox()),
  );
  expect(notice?.y).toBeGreaterThan(title?.y ?? 0);
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Close the message' }).click();
  expect(await alertsOf(page)).toEqual([]);
  await page.context().close();
});
