/** A marketplace that serves the console, and a browser, for tests of pages. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import {
  type ConsolePage,
  openPage,
  type PageOptions,
  startBrowser,
} from '../../fixtures/browser.ts';
import { buildConsoleIn } from '../../fixtures/built-console.ts';
import { createManualClock } from '../manual-clock.ts';
import { createTestMarket, type TestMarketOverrides } from './market-fixture.ts';

export type ConsoleScene = Awaited<ReturnType<typeof createConsoleScene>>;

/** Builds the console, starts the market and the browser; once per test file. The market's clock begins at the present. */
export async function createConsoleScene(overrides: TestMarketOverrides = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-console-'));
  const [market, browser] = await Promise.all([
    createTestMarket({
      consoleFolder: folder,
      clock: createManualClock(systemClock.now()),
      ...overrides,
    }),
    startBrowser(),
    buildConsoleIn(folder),
  ]);
  const origin = await market.server.listen({ host: '127.0.0.1', port: 0 });
  return {
    market,
    browser,
    origin,
    /** Folder with the build of the console. */
    folder,
    /** Opens a page; with `account`, in its session. */
    open({
      account,
      ...options
    }: Omit<PageOptions, 'origin' | 'session'> & {
      account?: { token: string; email: string };
    } = {}): Promise<ConsolePage> {
      return openPage(browser, {
        origin,
        ...options,
        ...(account && { session: { token: account.token, name: account.email } }),
      });
    },
    async close(): Promise<void> {
      await browser.close();
      await market.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
