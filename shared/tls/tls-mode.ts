/** When a listener serves TLS, and which addresses are loopback. Agents serve TLS on all addresses. Pure. */

import { allOrNone, type ConfigProblem, type IsSet } from '../runtime/config.ts';

/** `auto`: TLS unless the listener's address is loopback. */
export const TLS_MODES = ['auto', 'on', 'off'] as const;
export type TlsMode = (typeof TLS_MODES)[number];

/** Returns true if a host of a URL, or an address of a socket, is loopback. */
export function isLoopback(host: string): boolean {
  const address = host.replace(/^\[(.*)\]$/, '$1').replace(/^::ffff:/i, '');
  if (address === 'localhost' || address === '::1') return true;
  return /^127(?:\.\d{1,3}){3}$/.test(address);
}

/** Returns true for HTTPS, loopback, and text that is not a URL (its own schema rejects it). */
export function isSecureUrl(url: string): boolean {
  if (!URL.canParse(url)) return true;
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || isLoopback(hostname);
}

export function servesTls(mode: TlsMode, host: string): boolean {
  return mode === 'auto' ? !isLoopback(host) : mode === 'on';
}

export type ListenerChoice = {
  /** Prefix of the variables: `AGENT` or `VALIDATOR`. */
  prefix: string;
  /** Undefined if invalid. */
  mode: TlsMode | undefined;
  host: string | undefined;
  /** The operator has accepted plain HTTP beyond loopback. */
  acknowledged: boolean | undefined;
  isSet: IsSet;
};

/** Checks the TLS variables of a listener in combination. */
export function tlsProblems(choice: ListenerChoice): ConfigProblem[] {
  const { prefix, mode, host, acknowledged, isSet } = choice;
  const problems = allOrNone([`${prefix}_TLS_CERT`, `${prefix}_TLS_KEY`], isSet);
  if (mode !== 'off' || host === undefined || isLoopback(host) || acknowledged) return problems;
  const name = `${prefix}_TLS`;
  const why = `${host} is reachable from other machines, and all traffic would be readable`;
  const message = `${name} ("off"): ${why}; set ${prefix}_TLS_OFF_EXPOSED=true to accept this`;
  return [...problems, { name, message }];
}
