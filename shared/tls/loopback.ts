/** Where TLS is needed: everywhere but within one machine. Pure. */

/** When a listener serves TLS; `auto`: unless it listens on the loopback address. */
export const TLS_MODES = ['auto', 'on', 'off'] as const;
export type TlsMode = (typeof TLS_MODES)[number];

/** Whether a host name or address, as in a URL or of a socket, never leaves this machine. */
export function isLoopback(host: string): boolean {
  const address = host.replace(/^\[(.*)\]$/, '$1').replace(/^::ffff:/i, '');
  if (address === 'localhost' || address === '::1') return true;
  return /^127(?:\.\d{1,3}){3}$/.test(address);
}

export function servesTls(mode: TlsMode, host: string): boolean {
  return mode === 'auto' ? !isLoopback(host) : mode === 'on';
}

export type ListenerChoice = {
  /** `AGENT` or `VALIDATOR`: how the variables begin. */
  prefix: string;
  mode: TlsMode;
  host: string;
  /** Whether plain HTTP away from loopback was asked for by name. */
  acknowledged: boolean;
  certFile: string | undefined;
  keyFile: string | undefined;
};

/** The variable that is wrong and why, or null. */
export function tlsProblem(choice: ListenerChoice): { name: string; message: string } | null {
  const { prefix, mode, host } = choice;
  if ((choice.certFile === undefined) !== (choice.keyFile === undefined)) {
    const name = `${prefix}_TLS_KEY`;
    return { name, message: `${name} and ${prefix}_TLS_CERT: set both or none` };
  }
  if (mode !== 'off' || isLoopback(host) || choice.acknowledged) return null;
  const name = `${prefix}_TLS`;
  const why = `${host} is reached from elsewhere, and everything could be read on the way`;
  return { name, message: `${name} ("off"): ${why}; ${prefix}_TLS_OFF_EXPOSED=true accepts that` };
}
