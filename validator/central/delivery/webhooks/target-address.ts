/** Where a webhook may lead: to public addresses over TLS, or on a laptop to this machine alone. Pure. */
import { isIP } from 'node:net';
import { isPublicAddress } from '#shared/http/addresses.ts';
import { isLoopback } from '#shared/tls/tls-mode.ts';

/** `public`: https to the internet. `loopback`: to this machine, for a marketplace on a laptop. */
export const TARGETS = ['public', 'loopback'] as const;
export type Targets = (typeof TARGETS)[number];

/** Whether a connection to this address, as a resolver gives it, is allowed. */
export function isAllowedAddress(address: string, targets: Targets): boolean {
  if (targets === 'loopback') return isLoopback(address);
  return isPublicAddress(address);
}

/** Why no webhook may have this URL; null when its address alone is left to judge. */
export function targetProblem(text: string, targets: Targets): string | null {
  const url = URL.parse(text);
  if (url === null) return 'is not a URL';
  if (url.username !== '' || url.password !== '') return 'holds a user name or password';
  if (targets === 'loopback') {
    if (!/^https?:$/.test(url.protocol)) return 'begins with neither http:// nor https://';
    return isLoopback(bareHost(url))
      ? null
      : 'leads away from this machine, which is not done here';
  }
  if (url.protocol !== 'https:') return 'does not begin with https://';
  const host = bareHost(url);
  if (isIP(host) !== 0 && !isAllowedAddress(host, targets)) {
    return 'leads to a private or reserved address';
  }
  return null;
}

/** IPv6 addresses without their brackets. */
export function bareHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1');
}
