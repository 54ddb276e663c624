/** Logs in the console, against a real central API whose nodes have logs in memory. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FakeHost } from '../../fakes/agents/fake-agents.ts';
import { fakeLine } from '../../fakes/agents/fake-log.ts';
import { letTimePass } from '../../fakes/passing-time.ts';
import type { TestAccount } from '../../fakes/scenes/central-fixture.ts';
import { type ConsoleScene, createConsoleScene } from '../../fakes/scenes/console-scene.ts';
import { type ConsolePage, expectAccessible } from '../../fixtures/browser.ts';

let scene: ConsoleScene;
let account: TestAccount;
let host: FakeHost;
let podIds: string[];
/** Number of the last line that was written. */
let last = 0;
let stopTime: () => void;

beforeAll(async () => {
  scene = await createConsoleScene();
  const { market } = scene;
  account = await market.renter();
  const node = await market.verifiedNode({ gpus: 2, minimum: 1 });
  host = market.agents.host(node.id);
  podIds = [];
  for (const name of ['one', 'two']) {
    const rented = await market.rent(account, node.id, { pod_name: name, gpu_count: 1 });
    if (rented.status !== 200) throw new Error(JSON.stringify(rented.body));
    podIds.push(rented.body.id);
  }
  await market.sync();
  stopTime = letTimePass(market.clock);
});
afterAll(async () => {
  stopTime?.();
  await scene?.close();
});
beforeEach(() => host.log.rotate(last));

function write(count: number, textOf = (number: number) => `line ${number}`): void {
  const lines = Array.from({ length: count }, (_, at) =>
    fakeLine(last + at + 1, `${textOf(last + at + 1)}\n`),
  );
  last += count;
  host.log.write(...lines);
}

async function openLog(page: ConsolePage, query = ''): Promise<void> {
  await page.goto(`/pods/${podIds[0]}/logs${query}`);
  await page.getByText('Connected.').waitFor();
}

const lineOf = (page: ConsolePage, number: number) =>
  page.getByText(`line ${number}`, { exact: true });
const view = (page: ConsolePage) => page.getByRole('region', { name: 'Lines of one' });

describe('a log', () => {
  it('is followed until the reader scrolls up, and again from its end', async () => {
    write(500);
    const page = await scene.open({ account });
    await openLog(page, '?start=100');
    await lineOf(page, last).waitFor();
    write(10);
    await lineOf(page, last).waitFor();
    await view(page).hover();
    await page.mouse.wheel(0, -400);
    await page.getByText('Paused').waitFor();
    write(25);
    await page.getByText('Paused · 25 new lines').waitFor();
    expect(await lineOf(page, last).count()).toBe(0);
    await view(page).focus();
    await page.keyboard.press('End');
    await lineOf(page, last).waitFor();
    await page.getByText('Paused').waitFor({ state: 'detached' });
    expect(page.problems).toEqual([]);
    await page.context().close();
  });

  it('shows markup and colours as text, and is searched with the keyboard alone', async () => {
    write(300);
    write(1, () => '<img src=x onerror=alert(1)> \u001b[31mred\u001b[0m');
    write(300);
    const page = await scene.open({ account });
    await openLog(page);
    await lineOf(page, last).waitFor();
    await view(page).focus();
    await page.keyboard.press('Control+f');
    await page.keyboard.type('ONERROR');
    await page.getByText('1 line', { exact: true }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByText('1 of 1 line').waitFor();
    const line = page.locator('.log-line.hit');
    expect(await line.textContent()).toContain('<img src=x onerror=alert(1)> red');
    expect(await line.locator('mark').textContent()).toBe('onerror');
    expect(await line.locator('.ansi-fg-red').textContent()).toBe('red');
    await page.getByLabel('Search').fill('line');
    await page.getByText('600 lines').waitFor();
    await page.keyboard.press('F3');
    await page.getByText('1 of 600 lines').waitFor();
    expect(page.problems).toEqual([]);
    await page.context().close();
  });

  it('jumps to the only line that a search finds, and again when it has left the view', async () => {
    write(300);
    write(1, () => 'the needle');
    write(300);
    const page = await scene.open({ account });
    await openLog(page);
    await lineOf(page, last).waitFor();
    const needle = page.getByText('the needle', { exact: true });
    await page.getByLabel('Search').fill('the needle');
    await needle.waitFor();
    await page.getByText('Paused', { exact: true }).waitFor();
    await view(page).focus();
    await page.keyboard.press('Home');
    await needle.waitFor({ state: 'detached' });
    // The browser scrolls in steps, and would continue after the jump.
    const position = "document.querySelector('.log-view').scrollTop";
    await expect.poll(() => page.evaluate(position)).toBe(0);
    await page.getByLabel('Search').press('Enter');
    await needle.waitFor();
    await page.getByText('1 of 1 line').waitFor();
    await page.context().close();
  });

  it('shows characters that change the direction of text by their codes, and copies them', async () => {
    const text = 'safe \u202Egnp.exe\u2069 end';
    write(1, () => text);
    const page = await scene.open({ account });
    await openLog(page, '?times=off');
    const line = page.locator('.log-line', { hasText: 'gnp.exe' });
    await line.waitFor();
    const codes = '[...document.querySelectorAll(".log-code")].map(({ dataset }) => dataset.code)';
    expect(await page.evaluate(codes)).toEqual(['U+202E', 'U+2069']);
    const shown = 'getComputedStyle(document.querySelector(".log-code"), "::before").content';
    expect(await page.evaluate(shown)).toBe('"U+202E"');
    expect(await line.textContent()).toBe(text);
    // Without isolation, the override would put the end to the left of the file's name.
    const left = (part: string) =>
      page.evaluate(`(() => {
        const walker = document.createTreeWalker(document.querySelector('.log-line'), 4);
        for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
          const at = node.data.indexOf(${JSON.stringify(part)});
          if (at === -1) continue;
          const range = new Range();
          range.setStart(node, at);
          range.setEnd(node, at + 1);
          return range.getBoundingClientRect().left;
        }
      })()`) as Promise<number>;
    expect(await left('gnp')).toBeLessThan(await left('exe'));
    expect(await left('exe')).toBeLessThan(await left('end'));
    await page.context().close();
  });

  it('leads to the download where the browser has no clipboard', async () => {
    write(3);
    const page = await scene.open({ account });
    await page.addInitScript('Object.defineProperty(navigator, "clipboard", { value: undefined })');
    await openLog(page);
    await page.getByRole('button', { name: 'Copy all lines' }).click();
    await page.getByText('No clipboard: use Download').waitFor();
    await page.context().close();
  });

  it('continues after an interruption without a lost or repeated line, and marks a gap', async () => {
    write(5);
    const page = await scene.open({ account });
    // The browser's connection, which the test can end.
    let drop: () => void = () => undefined;
    await page.routeWebSocket(/\/logs\?/, (socket) => {
      const server = socket.connectToServer();
      drop = () => {
        void server.close();
        void socket.close({ code: 3000 });
      };
    });
    await openLog(page, '?wrap=false');
    await lineOf(page, last).waitFor();
    const texts = () => page.locator('.log-line > span').allTextContents();
    drop();
    await page.getByText('The view connects again').waitFor();
    write(5);
    await lineOf(page, last).waitFor();
    const numbers = (from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, at) => `line ${from + at}`);
    expect(await texts()).toEqual(numbers(last - 9, last));
    drop();
    await page.getByText('The view connects again').waitFor();
    host.log.rotate(10);
    write(3);
    await lineOf(page, last).waitFor();
    expect(await texts()).toEqual([...numbers(last - 12, last - 3), ...numbers(last - 2, last)]);
    await page.getByText(/Lines may be missing here: the node no longer stores them/).waitFor();
    await page.context().close();
  });

  it('takes settings from its address, and explains those that it cannot read', async () => {
    write(50);
    const page = await scene.open({ account });
    await openLog(page, '?start=yesterday&times=off');
    await page.getByText('The address has the start “yesterday”').waitFor();
    await lineOf(page, last).waitFor();
    expect(await page.locator('.log-line time').count()).toBe(0);
    await page.getByLabel('Show').selectOption('Last 100 lines');
    await page.getByText('The address has the start').waitFor({ state: 'detached' });
    await page.getByLabel('Times').selectOption('UTC');
    await page.locator('.log-line time').first().waitFor();
    expect(page.url()).toContain('start=100&times=utc');
    await page.context().close();
  });

  it('is saved as a file', async () => {
    write(30);
    const page = await scene.open({ account });
    await openLog(page, '?start=100');
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download' }).click();
    const download = await saved;
    expect(download.suggestedFilename()).toMatch(/^one-\d{4}-\d\d-\d\dT[\d-]+Z\.log$/);
    const stream = await download.createReadStream();
    const text = (await stream.toArray()).join('');
    expect(text).toContain(`2026-11-20T00:00:00Z line ${last}\n`);
    await page.context().close();
  });

  it('shows a refused and a failed connection in its panel, while the rest of the page works', async () => {
    const page = await scene.open({ account });
    await page.route('**/stream-ticket', (route) =>
      route.fulfill({ status: 500, json: { code: 'internal_error', detail: 'No' } }),
    );
    await page.goto(`/pods/${podIds[0]}/logs`);
    await page.getByText('No. The view connects again').waitFor();
    await page.getByRole('button', { name: 'Delete' }).waitFor();
    await page.unroute('**/stream-ticket');
    await page.routeWebSocket(/\/logs\?/, (socket) =>
      socket.close({ code: 4403, reason: 'forbidden' }),
    );
    await page.getByText('forbidden').waitFor();
    await page.routeWebSocket(/\/logs\?/, (socket) => {
      const server = socket.connectToServer();
      socket.send('{malformed');
      server.onMessage((message) => socket.send(message));
    });
    write(1);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('A message of the server could not be read').waitFor();
    await lineOf(page, last).waitFor();
    await page.context().close();
  });
});

describe('logs of several pods', () => {
  it('are side by side, or together by time', async () => {
    write(3);
    const page = await scene.open({ account });
    await page.goto('/logs');
    for (const name of ['one', 'two']) {
      await page.getByLabel('Add a pod').selectOption({ label: `${name} (running)` });
    }
    await page.getByRole('group', { name: 'Log of two' }).getByText(`line ${last}`).waitFor();
    await page.getByRole('group', { name: 'Log of one' }).getByText(`line ${last}`).waitFor();
    expect(page.url()).toContain(`pods=${podIds.join('%2C')}`);
    await page.getByLabel('Arrange').selectOption('Together, by time');
    await page.getByText('two: Connected.').waitFor();
    const lines = page.getByText(`line ${last}`, { exact: true });
    await lines.nth(1).waitFor();
    expect(await lines.count()).toBe(2);
    await page.getByRole('button', { name: 'Remove one' }).click();
    await expect.poll(() => page.getByText(`line ${last}`, { exact: true }).count()).toBe(1);
    expect(page.problems).toEqual([]);
    await page.context().close();
  });

  it('show an unknown pod as an error of its view only', async () => {
    write(1);
    const page = await scene.open({ account });
    await page.goto(`/logs?pods=${podIds[0]},nonsense`);
    await lineOf(page, last).waitFor();
    await page.getByRole('group', { name: 'Log of nonsense' }).getByRole('alert').waitFor();
    await page.context().close();
  });
});

it.each(['light', 'dark'] as const)(
  'is accessible in the %s theme, also on a phone',
  async (theme) => {
    write(
      40,
      (number) => `\u001b[3${number % 8}mline ${number}\u001b[0m \u001b[4${number % 8}mon\u001b[0m`,
    );
    for (const isPhone of [false, true]) {
      const page = await scene.open({ account, theme, isPhone });
      for (const path of [`/pods/${podIds[0]}/logs`, `/logs?pods=${podIds.join()}`, '/logs']) {
        await page.goto(path);
        if (path !== '/logs') await lineOf(page, last).first().waitFor();
        else await page.getByLabel('Add a pod').waitFor();
        await expectAccessible(page);
      }
      expect(page.problems).toEqual([]);
      await page.context().close();
    }
  },
);
