import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';

/**
 * The host's packet filter as the agent needs it: what pods may reach (agent reference 10).
 *
 * Rules go by the names of bridges, not by pod: they are the same for every agent of the host, and
 * stand before the first pod does.
 */
export type Firewall = {
  /** Interfaces that begin with this are under the rules. */
  bridgePrefix: string;
  /**
   * Puts the rules in place where they are missing or altered. `drift` counts the lines that somebody
   * else had removed or added since the last call. Rejects with FirewallUnavailable when that cannot be done.
   */
  assert(): Promise<{ drift: number }>;
  /** Takes the rules away; that there are none is success. */
  remove(): Promise<void>;
};

export class FirewallUnavailable extends Error {
  override name = 'FirewallUnavailable';
}

// MERGED agent/containers/network/firewall.ts: Keeps the firewall as it must be: asserted before each launch and at each round, with what was found.
export type FirewallGuard = ReturnType<typeof createFirewallGuard>;

/** Rules vanish when a firewall service reloads; nobody tells us. */
export const FIREWALL_INTERVAL_MS = 10_000;
/** A launch asks twice in a row; what was seen so lately is still so. */
const FRESH_MS = 1_000;

export function createFirewallGuard(deps: {
  firewall: Firewall;
  /** True: without rules no pod is started. */
  required: boolean;
  clock: Clock;
  log: Log;
  onDrift(lines: number): void;
}) {
  const { firewall, clock, log } = deps;
  let problem: string | null = 'not tried yet';
  let seenMs = -Infinity;
  let running: Promise<void> | null = null;

  async function assertNow(): Promise<void> {
    try {
      const { drift } = await firewall.assert();
      if (drift > 0) {
        log.warn({ lines: drift }, 'somebody changed the firewall rules of pods; they are back');
        deps.onDrift(drift);
      }
      problem = null;
      seenMs = clock.monotonicMs();
    } catch (error) {
      const message = messageOf(error);
      if (message !== problem) log.warn({ detail: message }, 'pods are without firewall rules');
      problem = message;
    }
  }

  /** One at a time; who comes meanwhile waits for the same. Never rejects. */
  function runOnce(): Promise<void> {
    running ??= assertNow().finally(() => {
      running = null;
    });
    return running;
  }

  return {
    bridgePrefix: firewall.bridgePrefix,
    required: deps.required,
    runOnce,
    /** For a pod about to start: rejects when the rules are demanded and cannot be had. */
    async ready(): Promise<void> {
      const fresh = problem === null && clock.monotonicMs() - seenMs < FRESH_MS;
      if (!fresh) await runOnce();
      if (problem === null || !deps.required) return;
      throw new NetworkUnavailable(`The firewall is demanded and not to be had: ${problem}`);
    },
    enforced: () => problem === null,
    /** A few words for /readyz; rejects while the rules do not stand. */
    async describe(): Promise<string> {
      if (problem !== null) throw new Error(problem);
      return 'enforced';
    },
  };
}

/** The pod's network cannot be had right now: no subnet left, or no firewall where one is demanded. */
export class NetworkUnavailable extends Error {
  override name = 'NetworkUnavailable';
}
