/** The console of a marketplace that runs as a process, in a browser, for the tests of one file. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createSigner, type Signer } from '#shared/signing/sr25519.ts';
import { CONSOLE_FOLDER } from '../../../validator/central/platform/console/console-files.ts';
import { logInToPortal } from '../../../validator/provider-cli/portal-client.ts';
import { eventually } from '../../fakes/eventually.ts';
import { startCommand } from '../../fakes/scenes/command-process.ts';
import {
  type ConsolePage,
  openPage,
  type PageOptions,
  startBrowser,
} from '../../fixtures/browser.ts';
import { buildConsoleIn } from '../../fixtures/built-console.ts';
import { api } from '../api.ts';
import { demo, home, runMarketplace } from '../marketplace-scene.ts';

export type ConsoleRun = {
  /** Opens a page in a separate profile. */
  open(options?: Omit<PageOptions, 'origin'>): Promise<ConsolePage>;
};

/** Starts marketplace and browser before the tests of the file, and ends both afterwards. */
export function runConsole(): ConsoleRun {
  let browser: Browser;
  runMarketplace();
  beforeAll(async () => {
    [browser] = await Promise.all([startBrowser(), buildConsoleIn(CONSOLE_FOLDER)]);
  });
  afterAll(() => browser?.close());
  return {
    open: (options = {}) =>
      openPage(browser, { origin: new URL(demo().console_url).origin, ...options }),
  };
}

/** Returns a session of the demo account. */
export async function demoSession(): Promise<{ token: string; name: string }> {
  const { email, password } = demo().account;
  const { body } = await api(demo(), 'POST', '/users/login', { email, password });
  return { token: (body as { token: string }).token, name: email };
}

/** Makes the demo account an operator, with the command of the operator's README. */
export async function becomeOperator(): Promise<void> {
  const { code, output } = await startCommand(
    'validator/central/main.ts',
    ['operator', 'grant', demo().account.email, '--reason', 'test of the console'],
    { CENTRAL_DATABASE: join(home, 'central.db') },
  ).ended;
  expect([code, output]).toEqual([0, expect.stringContaining('"operator":true')]);
}

/** Key of the demo provider. */
export function providerSigner(): Signer {
  return createSigner(Buffer.from(readFileSync(demo().provider.seed_file, 'utf8').trim(), 'hex'));
}

/** Returns a portal session of the demo provider. */
export async function providerSession(): Promise<{ token: string; name: string }> {
  const signer = providerSigner();
  return {
    token: await logInToPortal(demo().portal_url, signer, systemClock),
    name: signer.hotkey,
  };
}

/** Returns the token of the newest mail of this kind to the address. */
export function mailedToken(address: string, kind: string): Promise<string> {
  return eventually(`mail ${kind} to ${address}`, async () => {
    const { body } = await api(demo(), 'GET', '/_local/outbox');
    const mails = body as { to: string; kind: string; text: string }[];
    const mail = mails.find((each) => each.to === address && each.kind === kind);
    return /^[A-Za-z0-9_-]{43}$/m.exec(mail?.text ?? '')?.[0];
  });
}
