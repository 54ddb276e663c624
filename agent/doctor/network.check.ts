/** Checks of the host's packet filter, forwarding and routes. Rules are listed, never changed. */
import { readFile } from 'node:fs/promises';
import {
  fail,
  type Outcome,
  ok,
  unknown,
  unlessTimedOut,
  unread,
  warn,
} from '#shared/check/check.ts';
import type { DoctorCheck } from '#shared/check/doctor.ts';
import { type Observed, observe, outputOf } from '#shared/check/observe.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';
import {
  type Listing,
  limitsConnections,
  RULE_NAMES,
  readListing,
  TABLE,
} from '../containers/network/firewall-rules.ts';
import { type Cidr, formatCidr } from '../containers/network/subnets.ts';

type Route = { device: string; range: Cidr };

export type NetworkFacts = {
  /** `iptables v1.8.9 (nf_tables)`. */
  iptables: Observed<string>;
  /** The agent's own chains. */
  rules: Observed<Listing>;
  /** Warnings that iptables printed beside its output. */
  warnings: string;
  /** Policy of the chain FORWARD: `ACCEPT` or `DROP`. */
  forwardPolicy: Observed<string>;
  /** `net.ipv4.ip_forward`. */
  forwarding: Observed<boolean>;
  /** IPv4 routes except the default route. */
  routes: Observed<readonly Route[]>;
  /** AGENT_POD_SUBNETS. */
  pool: Cidr;
};

type Facts = NetworkFacts & {
  agentRuns: boolean;
  /** AGENT_REQUIRE_FIREWALL. */
  required: boolean;
};

const COMMAND = { timeoutMs: 4_000, maxOutputBytes: 4 * 1024 * 1024 };
const DEADLINE_MS = 5_000;
const FORWARDING = '/proc/sys/net/ipv4/ip_forward';
const ROUTES = '/proc/net/route';
/**
 * Names of the bridges of Docker's networks. An overlap with their routes is only a warning, because Docker
 * rejects a new network that overlaps another.
 */
const ENGINE_BRIDGE = /^(?:docker\d*|br-)/;

export async function readNetworkFacts(options: {
  clock: Clock;
  runCommand: RunCommand;
  pool: Cidr;
}): Promise<NetworkFacts> {
  const { clock, pool } = options;
  let warnings = '';
  const iptables = (...args: string[]): Promise<Observed<string>> =>
    observe(clock, DEADLINE_MS, async () => {
      const result = await options.runCommand('iptables', args, COMMAND);
      const stdout = outputOf('iptables', result);
      warnings += result.stderr.trim();
      return stdout;
    });
  const [version, mangle, forward, forwarding, routes] = await Promise.all([
    iptables('--version'),
    iptables('-w', '-t', TABLE, '-S'),
    iptables('-w', '-t', 'filter', '-S', 'FORWARD'),
    observe(clock, DEADLINE_MS, async () => (await readFile(FORWARDING, 'utf8')).trim() !== '0'),
    observe(clock, DEADLINE_MS, async () => routesIn(await readFile(ROUTES, 'utf8'))),
  ]);
  return {
    iptables: 'value' in version ? { value: version.value.trim() } : version,
    rules: 'value' in mangle ? { value: readListing(mangle.value, RULE_NAMES) } : mangle,
    warnings,
    forwardPolicy: policyIn(forward),
    forwarding,
    routes,
    pool,
  };
}

function policyIn(forward: Observed<string>): Observed<string> {
  if ('problem' in forward) return forward;
  return { value: /^-P FORWARD (\w+)/m.exec(forward.value)?.[1] ?? 'unknown' };
}

/** Parses /proc/net/route, whose addresses are little-endian hex. Leaves out the default route. */
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

export const NETWORK_CHECKS: readonly DoctorCheck<Facts>[] = [
  {
    id: 'firewall',
    detects: 'pods that can reach the host and its network',
    required: 'iptables works, and the agent’s rules come first while it runs',
    judge: firewall,
  },
  {
    id: 'forward-policy',
    detects: 'a host that routes packets for its neighbours',
    required: 'the policy of the chain FORWARD is DROP',
    judge({ forwardPolicy: policy }) {
      if ('problem' in policy) {
        const measured = `the chain FORWARD cannot be listed: ${policy.problem}`;
        return unread(policy, measured, 'run the doctor as root');
      }
      // With DROP, Docker opens only the published ports. With ACCEPT, this host routes packets for its neighbours.
      if (policy.value !== 'ACCEPT') return ok(`FORWARD: ${policy.value}`);
      return warn(
        'FORWARD: ACCEPT, so this host passes any packet between its networks',
        'iptables -P FORWARD DROP, and set the same policy at boot',
      );
    },
  },
  {
    id: 'ip-forwarding',
    detects: 'pods without a network',
    required: 'net.ipv4.ip_forward is 1',
    judge({ forwarding }) {
      if ('problem' in forwarding) {
        return unread(forwarding, `net.ipv4.ip_forward cannot be read: ${forwarding.problem}`);
      }
      if (forwarding.value) return ok('IPv4 is forwarded');
      const remedy =
        'sysctl -w net.ipv4.ip_forward=1, and the same setting in /etc/sysctl.d/90-podwright.conf';
      return fail('IPv4 is not forwarded: pods have no network', remedy);
    },
  },
  {
    id: 'pod-subnets',
    detects: 'pod networks that hide a network of the host',
    required: 'no route of the host leads into AGENT_POD_SUBNETS',
    judge: subnets,
  },
];

function firewall(facts: Facts): Outcome {
  const { iptables, rules, warnings, agentRuns, required } = facts;
  const problem = required ? fail : warn;
  if ('problem' in iptables) {
    const measured = `iptables cannot be run (${iptables.problem}): pods reach this host and its neighbours`;
    return unlessTimedOut(iptables, problem(measured, 'apt install iptables'));
  }
  if ('problem' in rules) {
    if (/permission denied|must be root/i.test(rules.problem)) {
      return unknown(`${iptables.value}; only root can list its rules`, 'run the doctor as root');
    }
    const measured = `${iptables.value} does not work: ${rules.problem}`;
    const remedy = 'modprobe ip_tables nf_tables; iptables -t mangle -S';
    return unlessTimedOut(rules, problem(measured, remedy));
  }
  const isFirst = rules.value.jumps.every(({ inFront }) => inFront);
  if (agentRuns && !isFirst) {
    const measured = `${iptables.value}: the agent runs, but its rules do not come first`;
    return fail(
      measured,
      'read /readyz of the agent; stop the program that rewrites the table mangle',
    );
  }
  if (agentRuns && !limitsConnections(rules.value)) {
    return warn(
      `${iptables.value}: the kernel does not limit the connections of pods, so one pod can fill its table`,
      'modprobe xt_hashlimit xt_connlimit, and restart the agent',
    );
  }
  if (/legacy tables present/i.test(warnings)) {
    return warn(
      `${iptables.value}, and rules of iptables-legacy are in force beside it`,
      'use one of the two: update-alternatives --config iptables, then reboot',
    );
  }
  return ok(`${iptables.value}${isFirst ? '; the rules of pods are in force' : ''}`);
}

function subnets({ routes, pool }: Facts): Outcome {
  if ('problem' in routes) return unread(routes, `the routes cannot be read: ${routes.problem}`);
  const name = formatCidr(pool);
  const clashes = routes.value.filter(
    ({ device, range }) => !device.startsWith(RULE_NAMES.bridges) && overlap(range, pool),
  );
  const foreign = clashes.filter(({ device }) => !ENGINE_BRIDGE.test(device));
  const remedy = 'set AGENT_POD_SUBNETS to a private range that no route of this host leads to';
  if (foreign.length > 0) {
    const measured = `AGENT_POD_SUBNETS ${name} overlaps ${foreign.map(formatRoute).join(', ')}`;
    return fail(`${measured}: pods would cut this host off from these networks`, remedy);
  }
  if (clashes.length > 0) {
    const shared = clashes.map(formatRoute).join(', ');
    return warn(`AGENT_POD_SUBNETS ${name} is shared with networks of Docker: ${shared}`, remedy);
  }
  return ok(`${name} overlaps no route of this host`);
}

/** Returns true if two aligned ranges share an address. */
function overlap(one: Cidr, other: Cidr): boolean {
  const prefix = Math.min(one.prefix, other.prefix);
  const size = 2 ** (32 - prefix);
  return Math.floor(one.base / size) === Math.floor(other.base / size);
}

function formatRoute({ device, range }: Route): string {
  return `${formatCidr(range)} (${device})`;
}
