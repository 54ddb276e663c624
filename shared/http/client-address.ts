/** Whom an address stands for. Pure. */

const HALF = 4;
const V4_IN_V6 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** An IPv6 host can take any address of its /64: they count as one. `ip` is as Node gives it. */
export function addressKeyOf(ip: string): string {
  const v4 = V4_IN_V6.exec(ip)?.[1];
  if (v4 !== undefined) return v4;
  if (!ip.includes(':')) return ip;
  const [head = '', tail] = ip.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 2 * HALF - before.length - after.length);
  const groups = [...before, ...Array.from({ length: zeros }, () => '0'), ...after];
  return `${groups.slice(0, HALF).join(':')}::/64`;
}
