/** Arguments to start our processes with Node, and a clean stop on a signal. */
import { fileURLToPath } from 'node:url';
import { systemClock } from './clock.ts';

/**
 * Folder of Node's compile cache, which holds the stripped and compiled sources by content. A process that finds all
 * its sources in the cache never loads the type stripper, which saves about 20 MB. The folder is below node_modules,
 * so it is removed with the installation.
 */
export const COMPILE_CACHE = fileURLToPath(
  new URL('../../node_modules/.cache/podwright', import.meta.url),
);

/**
 * Returns Node's arguments for `agent/main.ts`. The heaps are small: an agent is mostly idle, and renters use the
 * remaining memory. The compile cache depends on these flags, so the process that fills it must use the same ones.
 */
export function agentArguments(...args: readonly string[]): string[] {
  return ['--max-semi-space-size=2', '--optimize-for-size', AGENT_MAIN, ...args];
}

/** Returns Node's arguments for the agent's updater. The same flags as the agent's let both share the compile cache. */
export function switcherArguments(): string[] {
  return ['--max-semi-space-size=2', '--optimize-for-size', SWITCHER_MAIN];
}

/**
 * Returns Node's arguments for the SSH gateway. Heaps have Node's default size, because small heaps would slow the
 * gateway's data transfer.
 */
export function gatewayArguments(...args: readonly string[]): string[] {
  return [GATEWAY_MAIN, ...args];
}

const AGENT_MAIN = fileURLToPath(new URL('../../agent/main.ts', import.meta.url));
const SWITCHER_MAIN = fileURLToPath(new URL('../../agent/updates/main.ts', import.meta.url));
const GATEWAY_MAIN = fileURLToPath(new URL('../../agent/ssh-gateway/main.ts', import.meta.url));

const STOPPED_BY_USER = 130;
const SAME_SIGNAL_MS = 1_000;

/**
 * Calls `stop` on the first SIGINT or SIGTERM, then ends the process. `failed` handles a rejection of `stop`. Ctrl-C in an
 * npm script arrives twice, from the terminal and from npm, so a further signal ends the process at once only if it
 * arrives more than a second later.
 */
export function stopOnSignal(stop: () => Promise<void>, failed: (error: unknown) => void): void {
  let stoppingSinceMs: number | null = null;
  const onSignal = () => {
    if (stoppingSinceMs === null) {
      stoppingSinceMs = systemClock.monotonicMs();
      // Pending retries of the span exporter would otherwise delay the exit.
      void stop()
        .catch(failed)
        .finally(() => process.exit());
    } else if (systemClock.monotonicMs() - stoppingSinceMs > SAME_SIGNAL_MS) {
      process.exit(STOPPED_BY_USER);
    }
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, onSignal);
}
