/** IPv4 ranges, and the choice of pod subnets such as `10.201.0.16/28` from one pool. Pure. */
/** An aligned IPv4 range: `base` is its first address as a number. */
export type Cidr = { base: number; prefix: number };

/** Prefix length of a pod's subnet. A /28 has 13 addresses besides the bridge's; a pod needs one. */
const POD_PREFIX = 28;
/** Shortest prefix of a pool. A larger pool would take too long to search. */
const WIDEST_POOL = 8;
const SHAPE = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/;

/** Returns null unless the text is an aligned IPv4 range. */
export function parseCidr(text: string): Cidr | null {
  const [octets, prefix] = numbersOf(text);
  if (octets.length !== 4 || prefix === undefined || prefix > 32) return null;
  if (octets.some((octet) => octet > 255)) return null;
  const base = octets.reduce((sum, octet) => sum * 256 + octet, 0);
  return base % 2 ** (32 - prefix) === 0 ? { base, prefix } : null;
}

/** Like parseCidr, for ranges that have room for at least one pod. */
export function parsePool(text: string): Cidr | null {
  const pool = parseCidr(text);
  const fits = pool !== null && pool.prefix >= WIDEST_POOL && pool.prefix <= POD_PREFIX;
  return fits ? pool : null;
}

/** RFC 1918 and RFC 6598. Does not contain public, loopback and link-local ranges, such as 169.254.169.254. */
const PRIVATE = [
  { base: 0x0a_00_00_00, prefix: 8 },
  { base: 0xac_10_00_00, prefix: 12 },
  { base: 0xc0_a8_00_00, prefix: 16 },
  { base: 0x64_40_00_00, prefix: 10 },
];

export function isPrivateRange({ base, prefix }: Cidr): boolean {
  return PRIVATE.some(
    (wide) =>
      prefix >= wide.prefix && base >= wide.base && base < wide.base + 2 ** (32 - wide.prefix),
  );
}

export function formatCidr({ base, prefix }: Cidr): string {
  const octets = [24, 16, 8, 0].map((shift) => Math.floor(base / 2 ** shift) % 256);
  return `${octets.join('.')}/${prefix}`;
}

/** Number of pod subnets in the pool. */
export function poolSize(pool: Cidr): number {
  return 2 ** (POD_PREFIX - pool.prefix);
}

/**
 * Returns a free subnet, or null. The search starts at a place derived from the pod's id, so that agents that share
 * engine and pool rarely choose the same subnet.
 */
export function chooseSubnet(pool: Cidr, podId: string, taken: ReadonlySet<string>): string | null {
  const count = poolSize(pool);
  const start = Number.parseInt(podId.replaceAll('-', '').slice(-8), 16) % count || 0;
  for (let tried = 0; tried < count; tried += 1) {
    const offset = ((start + tried) % count) * 2 ** (32 - POD_PREFIX);
    const subnet = formatCidr({ base: pool.base + offset, prefix: POD_PREFIX });
    if (!taken.has(subnet)) return subnet;
  }
  return null;
}

function numbersOf(text: string): [number[], number | undefined] {
  const numbers = SHAPE.exec(text)?.slice(1).map(Number) ?? [];
  return [numbers.slice(0, 4), numbers[4]];
}
