/**
 * Visits the pages of one audience by their links, and clicks each link and each button. Dialogs are opened and closed
 * with Escape, so nothing that needs a confirmation is done.
 */
import type { Locator } from 'playwright-core';
import { expect } from 'vitest';
import { type ConsolePage, settle } from '../../fixtures/browser.ts';

export type RouteEntry = {
  path: string;
  audience: string;
  /** True for a page that exists only in a simulated marketplace. */
  isOfSimulation?: boolean;
};

export type ClickRun = {
  /** Routes that were visited. */
  routes: Set<string>;
  /** Kinds of pages to which a link was clicked. */
  linked: Set<string>;
  pages: number;
  clicks: number;
  /** Dead links, failed requests and errors in the console, each with its place. */
  findings: string[];
};

const START = 'start';
/** Buttons with the same name that are clicked on a page. */
const BUTTONS_OF_NAME = 2;
const CLICK_TIMEOUT_MS = 5_000;
/** These act at once, and the clicks after them would find nothing. */
const NOT_CLICKED = ['Rent the pod', 'Log out', 'Log out of the portal'];
const DIALOG = '[role=dialog], [role=alertdialog]';
const TWO_FRAMES =
  'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(null))))';

type ClickOptions = {
  routes: readonly RouteEntry[];
  audience: string;
  /** Addresses to begin with, which need not have links. Of the other pages, one of each kind is visited. */
  seeds: readonly string[];
};

/** Resolves when all pages that links lead to were visited. Takes the problems of the page into the findings. */
export async function clickPages(page: ConsolePage, options: ClickOptions): Promise<ClickRun> {
  const run: ClickRun = { routes: new Set(), linked: new Set(), pages: 0, clicks: 0, findings: [] };
  const queue = options.seeds.map((path) => ({ path, from: START }));
  const kinds = new Set<string>();
  const seen = new Set<string>();
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const { path, from } = next;
    if (seen.has(path)) continue;
    seen.add(path);
    const route = routeOf(options.routes, path);
    if (route === undefined) run.findings.push(`${from}: dead link to ${path}`);
    if (route?.audience !== options.audience) continue;
    const kind = kindOf(route, path);
    if (kinds.has(kind) && from !== START) continue;
    kinds.add(kind);
    run.routes.add(route.path);
    run.pages += 1;
    const links = await visit(page, path);
    collect(page, run, path);
    queue.push(...links.map((link) => ({ path: link, from: path })));
    run.clicks += await clickButtons(page, path, run);
    run.clicks += await clickLinks(page, path, { run, routes: options.routes });
  }
  return run;
}

/** Returns the first route that matches, as the router of the console does. */
function routeOf(routes: readonly RouteEntry[], path: string): RouteEntry | undefined {
  const [plain = ''] = path.split(/[?#]/, 1);
  return routes.find(({ path: pattern }) => expressionOf(pattern).test(plain));
}

function expressionOf(pattern: string): RegExp {
  const source = pattern.replace(/\/:\w+\?/g, '(?:/[^/]+)?').replace(/:\w+/g, '[^/]+');
  return new RegExp(`^${source}$`);
}

/** Pages of the same kind differ only in an id: the tab and the names of the parameters belong to the kind. */
function kindOf({ path: pattern }: RouteEntry, path: string): string {
  const { pathname, searchParams } = new URL(path, 'http://console');
  const optional = pattern.endsWith('?') ? pathname.split('/')[pattern.split('/').length - 1] : '';
  return [pattern, optional, ...[...searchParams.keys()].toSorted()].join(' ');
}

/** Opens the page and returns the addresses of its links within the console. */
async function visit(page: ConsolePage, path: string): Promise<string[]> {
  await open(page, path);
  const links = await page.evaluate(`[...document.querySelectorAll('a[href]')]
    .filter(({ origin, hash, pathname }) => origin === location.origin && !/^\\/(api|portal|docs)(\\/|$)/.test(pathname)
      && (hash === '' || pathname !== location.pathname))
    .map(({ pathname, search }) => pathname + search)`);
  return [...new Set(links as string[])];
}

async function open(page: ConsolePage, path: string): Promise<void> {
  await page.goto(path);
  await settle(page);
}

/** Dialogs hide the title of the page, so that only its panels can be awaited. */
async function loaded(page: ConsolePage): Promise<void> {
  await expect.poll(() => page.getByText('Loading …').count()).toBe(0);
}

/** Moves the problems of the page to the findings. */
function collect(page: ConsolePage, run: ClickRun, where: string): void {
  run.findings.push(...page.problems.splice(0).map((problem) => `${where}: ${problem}`));
}

type Clickable = { kind: 'button' | 'summary'; name: string; nth: number };

/** Clicks each button of the page, and closes the dialogs that open. Returns the number of clicks. */
async function clickButtons(page: ConsolePage, path: string, run: ClickRun): Promise<number> {
  // The head is the same on all pages.
  const scope = run.pages === 1 ? 'body' : 'main';
  let clicks = 0;
  for (const clickable of await clickablesOf(page, scope)) {
    // An earlier click may have covered or replaced it; then the page is opened again.
    const isClicked =
      (await click(page, scope, clickable)) ||
      (await open(page, path).then(() => click(page, scope, clickable)));
    if (!isClicked) continue;
    clicks += 1;
    await page.evaluate(TWO_FRAMES);
    await loaded(page);
    await forgetRefusals(page);
    collect(page, run, `${path}, after a click on ${clickable.name}`);
    await closeDialogs(page);
    if (new URL(page.url()).pathname !== path.split(/[?#]/, 1)[0]) await open(page, path);
  }
  return clicks;
}

function locate(page: ConsolePage, scope: string, { kind, name, nth }: Clickable): Locator {
  const place = page.locator(scope);
  return kind === 'button'
    ? place.getByRole('button', { name, exact: true, disabled: false }).nth(nth)
    : place.locator('summary', { hasText: name }).nth(nth);
}

/** Returns false if the element is missing or covered. */
async function click(page: ConsolePage, scope: string, clickable: Clickable): Promise<boolean> {
  const element = locate(page, scope, clickable);
  if ((await element.count()) === 0) return false;
  return element.click({ timeout: CLICK_TIMEOUT_MS }).then(
    () => true,
    () => false,
  );
}

async function clickablesOf(page: ConsolePage, scope: string): Promise<Clickable[]> {
  const counts = new Map<string, number>();
  const found: Clickable[] = [];
  const elements = page.locator(`${scope} :is(button:not(:disabled), summary):visible`);
  for (const element of await elements.all()) {
    const kind = (await element.evaluate(({ tagName }) => tagName === 'SUMMARY'))
      ? 'summary'
      : 'button';
    const label = await element.getAttribute('aria-label');
    const name = (label ?? (await element.innerText())).trim();
    const nth = counts.get(name) ?? 0;
    counts.set(name, nth + 1);
    if (nth < BUTTONS_OF_NAME && !NOT_CLICKED.includes(name)) found.push({ kind, name, nth });
  }
  return found;
}

/** A form that was sent without input is refused with a reason. The page must show it. */
async function forgetRefusals(page: ConsolePage): Promise<void> {
  const isRefusal = (problem: string) => /(?:: |status of )4(?:00|09|22)\b/.test(problem);
  if (page.problems.length === 0 || !page.problems.every(isRefusal)) return;
  if ((await page.getByRole('alert').count()) > 0) page.problems.length = 0;
}

/** In a dialog with a list, the first Escape may only clear the list. */
async function closeDialogs(page: ConsolePage): Promise<void> {
  const dialogs = page.locator(DIALOG);
  await expect
    .poll(async () => {
      if ((await dialogs.count()) === 0) return 0;
      await page.keyboard.press('Escape');
      await page.evaluate(TWO_FRAMES);
      return dialogs.count();
    })
    .toBe(0);
}

type LinkOptions = { run: ClickRun; routes: readonly RouteEntry[] };

/** Clicks one link to each kind of page to which no other page had one. Returns the number of clicks. */
async function clickLinks(
  page: ConsolePage,
  path: string,
  { run, routes }: LinkOptions,
): Promise<number> {
  await open(page, path);
  let clicks = 0;
  const links = page.locator('main a[href^="/"]:not([target])');
  for (const href of new Set(
    await links.evaluateAll((all) => all.map((link) => link.getAttribute('href') ?? '')),
  )) {
    const route = routeOf(routes, href);
    if (route === undefined || run.linked.has(kindOf(route, href))) continue;
    const link = page.locator(`main a[href="${href}"]:not([target])`).first();
    if ((await link.count()) === 0 || !(await link.isVisible())) continue;
    run.linked.add(kindOf(route, href));
    clicks += 1;
    await link.click();
    await settle(page);
    const title = await page.getByRole('heading', { level: 1 }).first().textContent();
    if (title === 'Page not found') run.findings.push(`${path}: dead link to ${href}`);
    collect(page, run, `${path}, after a click on the link to ${href}`);
    await open(page, path);
  }
  return clicks;
}
