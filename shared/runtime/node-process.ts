/** How our processes start Node: with small heaps and, above all, without the type stripper in memory. */
import { fileURLToPath } from 'node:url';

/**
 * Folder of Node's compile cache. It holds the stripped and compiled sources, keyed by their content: a
 * process that finds all of its own there never loads the type stripper, which costs some 20 MB for good.
 * Below node_modules, so that it belongs to the installation and goes with it.
 */
export const COMPILE_CACHE = fileURLToPath(
  new URL('../../node_modules/.cache/podwright', import.meta.url),
);

/**
 * Arguments of Node for `agent/main.ts` with `args`. Small heaps: an agent is mostly idle, and its memory is
 * taken from a renter's. The cache is kept per set of flags, so what fills it must run with the same.
 */
export function agentArguments(...args: readonly string[]): string[] {
  return ['--max-semi-space-size=2', '--optimize-for-size', AGENT_MAIN, ...args];
}

/** Arguments of Node for what replaces an agent by a newer one; with the agent's flags it shares its compiled sources. */
export function switcherArguments(): string[] {
  return ['--max-semi-space-size=2', '--optimize-for-size', SWITCHER_MAIN];
}

/** Arguments of Node for the SSH gateway. No smaller heaps: it moves bytes, and small ones would slow it. */
export function gatewayArguments(...args: readonly string[]): string[] {
  return [GATEWAY_MAIN, ...args];
}

const AGENT_MAIN = fileURLToPath(new URL('../../agent/main.ts', import.meta.url));
const SWITCHER_MAIN = fileURLToPath(new URL('../../agent/updates/main.ts', import.meta.url));
const GATEWAY_MAIN = fileURLToPath(new URL('../../agent/ssh-gateway/main.ts', import.meta.url));

/** How a process that serves is told to end. */

/** Calls `stop` at a SIGINT or SIGTERM, once for each, and ends the process after it; `failed` notes its failure in the exit status. */
export function stopOnSignal(stop: () => Promise<void>, failed: (error: unknown) => void): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    // What an exporter of spans still tries would keep the process.
    process.once(
      signal,
      () =>
        void stop()
          .catch(failed)
          .finally(() => process.exit()),
    );
  }
}
