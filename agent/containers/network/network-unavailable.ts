/** The pod's network cannot be had right now: no subnet left, or no firewall where one is demanded. */
export class NetworkUnavailable extends Error {
  override name = 'NetworkUnavailable';
}
