/** Where TLS is needed: everywhere but within one machine. Pure. */

import { allOrNone, type ConfigProblem, type IsSet } from '../runtime/config.ts';

/** When a listener serves TLS; `auto`: unless it listens on the loopback address. */
export const TLS_MODES = ['auto', 'on', 'off'] as const;
export type TlsMode = (typeof TLS_MODES)[number];

/** Whether a host name or address, as in a URL or of a socket, never leaves this machine. */
export function isLoopback(host: string): boolean {
  const address = host.replace(/^\[(.*)\]$/, '$1').replace(/^::ffff:/i, '');
  if (address === 'localhost' || address === '::1') return true;
  return /^127(?:\.\d{1,3}){3}$/.test(address);
}

/** False where somebody between here and there could read what is sent; what is no URL at all passes. */
export function isSecureUrl(url: string): boolean {
  if (!URL.canParse(url)) return true;
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || isLoopback(hostname);
}

export function servesTls(mode: TlsMode, host: string): boolean {
  return mode === 'auto' ? !isLoopback(host) : mode === 'on';
}

export type ListenerChoice = {
  /** `AGENT` or `VALIDATOR`: how the variables begin. */
  prefix: string;
  /** What is not right by itself is undefined. */
  mode: TlsMode | undefined;
  host: string | undefined;
  /** Whether plain HTTP away from loopback was asked for by name. */
  acknowledged: boolean | undefined;
  isGiven: IsSet;
};

/** What is wrong with the variables of a listener taken together. */
export function tlsProblems(choice: ListenerChoice): ConfigProblem[] {
  const { prefix, mode, host, acknowledged, isGiven } = choice;
  const problems = allOrNone([`${prefix}_TLS_CERT`, `${prefix}_TLS_KEY`], isGiven);
  if (mode !== 'off' || host === undefined || isLoopback(host) || acknowledged) return problems;
  const name = `${prefix}_TLS`;
  const why = `${host} is reached from elsewhere, and everything could be read on the way`;
  const message = `${name} ("off"): ${why}; ${prefix}_TLS_OFF_EXPOSED=true accepts that`;
  return [...problems, { name, message }];
}
