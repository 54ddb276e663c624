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
