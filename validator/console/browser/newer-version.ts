/** Newer builds of the console, which lack the files of the build that runs in an open page. */
import { ApiFailure } from '../api/failure.ts';
import { browserMs } from './clock.ts';

const CODE = 'newer_version';
const RELOADED_AT = 'podwright.reloaded-at';
/** A second reload in this time would have the same result. */
const RELOAD_PAUSE_MS = 60_000;
/** The first script of a built page. */
const SCRIPT = /<script type="module"[^>]* src="(?<path>\/assets\/[^"]+)"/;

export const isNewerVersion = (error: unknown): boolean =>
  error instanceof ApiFailure && error.facts.code === CODE;

/** Rejects with an `ApiFailure` if the server has another build than this page. Does nothing if the server does not answer. */
export async function requireThisVersion(): Promise<void> {
  const own = document.querySelector('script[type=module]')?.getAttribute('src');
  const served = await servedScript().catch(() => undefined);
  if (served === undefined || served === own) return;
  throw new ApiFailure('A newer version of the console is available', {
    status: 0,
    code: CODE,
    hint: 'Load the page again to use it. What you have typed on this page is then lost.',
    requestId: null,
    problems: [],
  });
}

async function servedScript(): Promise<string | undefined> {
  const page = await fetch('/', { headers: { Accept: 'text/html' } });
  return SCRIPT.exec(await page.text())?.groups?.['path'];
}

export function reloadPage(): void {
  window.location.reload();
}

/** Loads the page again. Returns false if this happened a moment ago. */
export function reloadOnce(): boolean {
  const reloadedAtMs = Number(window.sessionStorage.getItem(RELOADED_AT));
  if (browserMs() - reloadedAtMs < RELOAD_PAUSE_MS) return false;
  window.sessionStorage.setItem(RELOADED_AT, String(browserMs()));
  reloadPage();
  return true;
}
