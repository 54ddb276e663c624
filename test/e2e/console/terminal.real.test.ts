/** The console's terminal, through a real central API, to a shell in a pod of a real agent on the Docker engine. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MAX_TERMINAL_MESSAGE_BYTES } from '#shared/api/agent/terminal.ts';
import { startTerminalHost, type TerminalHost } from '../../fakes/agents/terminal-host.ts';
import { letTimePass } from '../../fakes/passing-time.ts';
import type { TestAccount } from '../../fakes/scenes/central-fixture.ts';
import { type ConsoleScene, createConsoleScene } from '../../fakes/scenes/console-scene.ts';
import { type ConsolePage, expectAccessible } from '../../fixtures/browser.ts';

const STARTS_WITHIN_MS = 300_000;

let scene: ConsoleScene;
let host: TerminalHost;
let account: TestAccount;
let stopTime: () => void;
/** The pod with a shell, and one that does not run. */
let podId: string;
let stoppedId: string;

beforeAll(async () => {
  [scene, host] = await Promise.all([createConsoleScene(), startTerminalHost()]);
  const { market } = scene;
  account = await market.renter();
  const node = await market.verifiedNode({ gpus: 2, minimum: 1 });
  const rent = () => market.rent(account, node.id, { gpu_count: 1 });
  podId = (await rent()).body.id;
  await market.sync();
  market.agents.host(node.id).arrives = 'pulling';
  stoppedId = (await rent()).body.id;
  // The node of the market is in memory; its terminals are those of the agent.
  market.agents.terminalOf = (_, __, { query: { cols, rows, term }, signal }) =>
    host.agent().connect({
      path: `/v1/pods/${host.pod.id}/exec?cols=${cols}&rows=${rows}&term=${term}`,
      maxMessageBytes: MAX_TERMINAL_MESSAGE_BYTES,
      signal,
    });
  stopTime = letTimePass(market.clock);
}, STARTS_WITHIN_MS);
afterAll(async () => {
  stopTime?.();
  await scene?.close();
  await host?.close();
});

async function openTerminal(page: ConsolePage): Promise<void> {
  await page.goto(`/pods/${podId}/terminal`);
  await page.getByText('Connected.').waitFor();
}

const screen = (page: ConsolePage) => page.locator('.xterm-rows');
const shows = (page: ConsolePage, text: string) => screen(page).getByText(text).first().waitFor();

async function type(page: ConsolePage, line: string): Promise<void> {
  await page.keyboard.type(line);
  await page.keyboard.press('Enter');
}

describe('a shell', () => {
  it('runs what is typed, has the size of the screen, colours, and ends with its status', async () => {
    const page = await scene.open({ account });
    await openTerminal(page);
    await type(page, 'echo $((6 * 7))-answer');
    await shows(page, '42-answer');
    await type(page, 'stty size | tr " " x');
    const size = /^(\d+)x(\d+)$/;
    await expect.poll(async () => (await screen(page).textContent()) ?? '').toMatch(/\d+x\d+/);
    const [, , cols] =
      size.exec((await screen(page).getByText(size).first().textContent())?.trim() ?? '') ?? [];
    expect(Number(cols)).toBeGreaterThan(80);
    await page.setViewportSize({ width: 700, height: 900 });
    await type(page, 'echo $(stty size | tr " " y)-small');
    await expect
      .poll(async () => /y(\d+)-small/.exec((await screen(page).textContent()) ?? '')?.[1])
      .toBeDefined();
    const [, narrow] = /y(\d+)-small/.exec((await screen(page).textContent()) ?? '') ?? [];
    expect(Number(narrow)).toBeLessThan(Number(cols));
    await type(page, "printf '\\033[38;2;200;10;10mcoloured\\033[0m\\n'");
    const coloured = screen(page).locator('span', { hasText: /^coloured$/ });
    await coloured.waitFor();
    expect(await coloured.getAttribute('style')).toContain('color: rgb(');
    await type(page, 'exit 7');
    await page.getByText('The shell has ended with status 7.').waitFor();
    await page.getByRole('button', { name: 'Open a new shell' }).click();
    await page.getByText('Connected.').waitFor();
    await type(page, 'echo $((7 * 7))-again');
    await shows(page, '49-again');
    expect(page.problems).toEqual([]);
    await page.context().close();
  });

  it('is left with a key, and explains a lost connection', async () => {
    const page = await scene.open({ account });
    let drop: () => void = () => undefined;
    await page.routeWebSocket(/\/terminal\?/, (socket) => {
      socket.connectToServer();
      drop = () => void socket.close({ code: 1011 });
    });
    await openTerminal(page);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Control+F6');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Fill the window');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Leave the full window' }).waitFor();
    drop();
    await page.getByText('A shell cannot be resumed').waitFor();
    await page.getByRole('button', { name: 'Open a new shell' }).click();
    await page.getByText('Connected.').waitFor();
    expect(page.problems).toEqual([]);
    await page.context().close();
  });

  it('is refused with a reason, while the rest of the page works', async () => {
    const page = await scene.open({ account });
    await page.route('**/stream-ticket', (route) =>
      route.fulfill({
        status: 429,
        json: { code: 'rate_limited', detail: 'Too many' },
      }),
    );
    await page.goto(`/pods/${podId}/terminal`);
    await page.getByText('rate_limited').waitFor();
    await page.getByRole('button', { name: 'Delete' }).waitFor();
    await page.unroute('**/stream-ticket');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('Connected.').waitFor();
    await page.context().close();
  });

  it('needs a pod that runs', async () => {
    const page = await scene.open({ account });
    await page.goto(`/pods/${stoppedId}/terminal`);
    await page.getByText('A terminal needs a running pod').waitFor();
    expect(page.problems).toEqual([]);
    await page.context().close();
  });
});

it.each(['light', 'dark'] as const)(
  'is accessible in the %s theme, also on a phone',
  async (theme) => {
    for (const isPhone of [false, true]) {
      const page = await scene.open({ account, theme, isPhone });
      await openTerminal(page);
      await type(page, "printf '\\033[3%smcolour\\033[0m ' 0 1 2 3 4 5 6 7; echo $((40 + 2))");
      await shows(page, '42');
      await expectAccessible(page);
      await page.getByLabel('Support a screen reader').check();
      await expectAccessible(page);
      expect(page.problems).toEqual([]);
      await page.context().close();
    }
  },
);
