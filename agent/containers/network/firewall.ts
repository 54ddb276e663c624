import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';

/**
 * The host's packet filter, which limits what pods can reach. Rules match the bridges' name prefix, not single pods.
 * Therefore they are the same for every agent on the host, and are in place before the first pod starts.
 */
export type Firewall = {
  /** The rules apply to interfaces whose names start with this prefix. */
  bridgePrefix: string;
  /**
   * Restores missing or changed rules. `drift` is the number of lines that another program removed or added since the
   * last call. Rejects with FirewallUnavailable.
   */
  assert(): Promise<{ drift: number }>;
  /** Removes the rules. Missing rules are success. */
  remove(): Promise<void>;
};

export class FirewallUnavailable extends Error {
  override name = 'FirewallUnavailable';
}

export type FirewallGuard = ReturnType<typeof createFirewallGuard>;

/**
 * Interval of checks in milliseconds. Short, because a reload of a firewall service removes the rules without notice.
 */
export const FIREWALL_INTERVAL_MS = 10_000;
/** Age up to which a result is reused: a launch checks twice within a short time. */
const FRESH_MS = 1_000;

/** Checks the rules before each launch and periodically, and restores them. */
export function createFirewallGuard(deps: {
  firewall: Firewall;
  /** True: pods start only once the rules are in place. */
  required: boolean;
  clock: Clock;
  log: Log;
  onDrift(lines: number): void;
}) {
  const { firewall, clock, log } = deps;
  let problem: string | null = 'not checked yet';
  let checkedMs = -Infinity;
  let running: Promise<void> | null = null;

  async function assertNow(): Promise<void> {
    try {
      const { drift } = await firewall.assert();
      if (drift > 0) {
        log.warn({ lines: drift }, 'firewall rules were changed by another program and restored');
        deps.onDrift(drift);
      }
      problem = null;
      checkedMs = clock.monotonicMs();
    } catch (error) {
      const message = messageOf(error);
      if (message !== problem) log.warn({ detail: message }, 'firewall rules are not in place');
      problem = message;
    }
  }

  /** Runs one check; concurrent callers share it. Never rejects. */
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
    /** Call before a pod starts. Rejects with NetworkUnavailable if the rules are required and not in place. */
    async ready(): Promise<void> {
      const fresh = problem === null && clock.monotonicMs() - checkedMs < FRESH_MS;
      if (!fresh) await runOnce();
      if (problem === null || !deps.required) return;
      throw new NetworkUnavailable(`The firewall is required and not available: ${problem}`);
    },
    enforced: () => problem === null,
    /** Text for /readyz. Rejects while the rules are not in place. */
    async describe(): Promise<string> {
      if (problem !== null) throw new Error(problem);
      return 'enforced';
    },
  };
}

/** The pod's network is not available now: no subnet is free, or a required firewall is missing. */
export class NetworkUnavailable extends Error {
  override name = 'NetworkUnavailable';
}
