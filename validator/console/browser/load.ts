import { sleep } from './clock.ts';

const RETRY_MS = [300, 1_000, 3_000];

/**
 * Runs an `import()`, and repeats it after failures: a browser ends all requests when a network of its host changes.
 * Rejects with the last error.
 */
export async function load<Result>(importFile: () => Promise<Result>): Promise<Result> {
  for (const delayMs of RETRY_MS) {
    try {
      return await importFile();
    } catch {
      await sleep(delayMs);
    }
  }
  return importFile();
}
