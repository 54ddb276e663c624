import { sleep } from './clock.ts';
import { requireThisVersion } from './newer-version.ts';

const RETRY_MS = [300, 1_000, 3_000];
/** Message of the build tool when a style sheet of a file fails. It does not request such a style sheet again. */
const LOST_STYLES = /^Unable to preload CSS for (\S+)$/;

/**
 * Runs an `import()`, and repeats it after failures: a browser ends all requests when a network of its host changes.
 * Rejects with the last error, or at once with an `ApiFailure` if a newer build has replaced the file.
 */
export async function load<Result>(importFile: () => Promise<Result>): Promise<Result> {
  let lostStyles: string | undefined;
  for (const delayMs of RETRY_MS) {
    try {
      if (lostStyles !== undefined) await loadStyles(lostStyles);
      return await importFile();
    } catch (error) {
      if (error instanceof Error) lostStyles = LOST_STYLES.exec(error.message)?.[1] ?? lostStyles;
      await requireThisVersion();
      await sleep(delayMs);
    }
  }
  return importFile();
}

/** Replaces a style sheet that failed. Rejects if it fails again. */
async function loadStyles(address: string): Promise<void> {
  for (const link of document.querySelectorAll<HTMLLinkElement>('link[rel=stylesheet]')) {
    if (link.getAttribute('href') === address) link.remove();
  }
  const link = document.createElement('link');
  link.rel = 'stylesheet';
  link.href = address;
  await new Promise((resolve, reject) => {
    link.addEventListener('load', resolve);
    link.addEventListener('error', () => reject(new Error('The style sheet did not load')));
    document.head.append(link);
  });
}
