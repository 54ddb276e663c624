/** The host's packet filter, forwarding and routes. Nothing is changed: the rules are only listed. */
import { readFile } from 'node:fs/promises';
import { type Told, tell } from '#shared/check/told.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';
import {
  type Listing,
  RULE_NAMES,
  readListing,
  TABLE,
} from '../containers/network/firewall-rules.ts';
import { type Cidr, formatCidr } from '../containers/network/subnets.ts';

export type Route = { device: string; range: Cidr };

export type NetworkFacts = {
  /** `iptables v1.8.9 (nf_tables)`. */
  iptables: Told<string>;
  /** Our chains, as they stand. */
  rules: Told<Listing>;
  /** What iptables remarked beside its answer. */
  remarks: string;
  /** The policy of the chain FORWARD: `ACCEPT` or `DROP`. */
  forwardPolicy: Told<string>;
  /** `net.ipv4.ip_forward`. */
  forwarding: Told<boolean>;
  /** IPv4 routes but for the default one. */
  routes: Told<readonly Route[]>;
  pool: Cidr;
};

const COMMAND = { timeoutMs: 4_000, maxOutputBytes: 4 * 1024 * 1024 };
const DEADLINE_MS = 5_000;
const FORWARDING = '/proc/sys/net/ipv4/ip_forward';
const ROUTES = '/proc/net/route';

export async function readNetworkFacts(options: {
  clock: Clock;
  runCommand: RunCommand;
  pool: Cidr;
}): Promise<NetworkFacts> {
  const { clock, pool } = options;
  let remarks = '';
  const iptables = (...args: string[]): Promise<Told<string>> =>
    tell(clock, DEADLINE_MS, async () => {
      const { exitCode, stdout, stderr, ended } = await options.runCommand(
        'iptables',
        args,
        COMMAND,
      );
      const words = stderr.trim();
      if (exitCode !== 0) throw new Error(words || ended || `exit status ${exitCode}`);
      remarks += words;
      return stdout;
    });
  const [version, mangle, forward, forwarding, routes] = await Promise.all([
    iptables('--version'),
    iptables('-w', '-t', TABLE, '-S'),
    iptables('-w', '-t', 'filter', '-S', 'FORWARD'),
    tell(clock, DEADLINE_MS, async () => (await readFile(FORWARDING, 'utf8')).trim() !== '0'),
    tell(clock, DEADLINE_MS, async () => routesIn(await readFile(ROUTES, 'utf8'))),
  ]);
  return {
    iptables: 'value' in version ? { value: version.value.trim() } : version,
    rules: 'value' in mangle ? { value: readListing(mangle.value, RULE_NAMES) } : mangle,
    remarks,
    forwardPolicy: policyIn(forward),
    forwarding,
    routes,
    pool,
  };
}

function policyIn(forward: Told<string>): Told<string> {
  if ('problem' in forward) return forward;
  return { value: /^-P FORWARD (\w+)/m.exec(forward.value)?.[1] ?? 'unknown' };
}

/** The kernel's table: little-endian hex. The default route is left out. */
export function routesIn(text: string): Route[] {
  return text
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [device = '', destination = '', , , , , , mask = ''] = line.split('\t');
      if (destination.length !== 8 || mask.trim() === '00000000') return [];
      const prefix = [...numberIn(mask).toString(2)].filter((bit) => bit === '1').length;
      return [{ device, range: { base: numberIn(destination), prefix } }];
    });
}

function numberIn(littleEndian: string): number {
  const octets = littleEndian.trim().match(/../g) ?? [];
  return Number.parseInt(octets.toReversed().join(''), 16);
}

/** Whether two aligned ranges share an address. */
export function overlap(one: Cidr, other: Cidr): boolean {
  const prefix = Math.min(one.prefix, other.prefix);
  const size = 2 ** (32 - prefix);
  return Math.floor(one.base / size) === Math.floor(other.base / size);
}

export function wordsOf({ device, range }: Route): string {
  return `${formatCidr(range)} (${device})`;
}
