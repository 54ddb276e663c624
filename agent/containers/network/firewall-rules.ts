/** Firewall rules of pods as input for iptables-restore, and parsing of `iptables -S`. Pure. */
import { BENCHMARK_RANGE, NON_PUBLIC_IPV4 } from '#shared/http/addresses.ts';

/**
 * Table of the rules. Not `filter` with the usual DOCKER-USER chain: the engine detaches that chain briefly whenever it
 * creates a network, which would expose all pods. In `mangle` no ACCEPT rules of other programs take precedence.
 */
export const TABLE = 'mangle';

/** Names of the chains and of the bridges to which the rules apply. Tests use other names. */
export type RuleNames = { input: string; forward: string; bridges: string };

export const RULE_NAMES: RuleNames = {
  input: 'PODWRIGHT-INPUT',
  forward: 'PODWRIGHT-FORWARD',
  bridges: 'pw',
};

/** Matches for reply packets, best first. Kernels differ in the modules that they have. */
export const REPLIES: readonly string[] = [
  '-m conntrack --ctstate RELATED,ESTABLISHED',
  '-m state --state RELATED,ESTABLISHED',
];

/** Prefix of all chains of the agent. */
const CHAIN_PREFIX = 'PODWRIGHT-';

/** Address ranges that pods may not reach. */
const CLOSED = [...NON_PUBLIC_IPV4, BENCHMARK_RANGE];
const SMTP = 25;
const DNS = 53;
/**
 * Limits of each pod's outgoing connections, because one pod could otherwise fill the kernel's table of connections,
 * and then the host and all other pods lose every new connection. The table has at least 65,536 entries, 262,144 from
 * 8 GiB of memory on. A closed connection stays in the table for two minutes, but counts only for the rate.
 */
export const CONNECTION_LIMITS = { open: 4_096, perSecond: 200, burst: 1_000 };

export type ChainRules = { input: string[]; forward: string[] };

/**
 * Rules for packets from pods. `allow` are private ranges that pods may reach, `resolvers` are DNS servers that they
 * may reach. `limitsConnections` requires kernel modules that not every host has.
 */
export function rulesForIpv4(options: {
  names: RuleNames;
  allow: readonly string[];
  resolvers: readonly string[];
  replies: string;
  limitsConnections: boolean;
}): ChainRules {
  const { names, allow, resolvers, replies } = options;
  const dns = resolvers.flatMap((address) =>
    ['udp', 'tcp'].map((protocol) => `-d ${address} -p ${protocol} --dport ${DNS} -j RETURN`),
  );
  // RETURN instead of ACCEPT, so that rules of the host and the engine still apply.
  return {
    input: [`${replies} -j RETURN`, ...dns, '-j DROP'],
    forward: [
      `${replies} -j RETURN`,
      `-o ${names.bridges}+ -j DROP`,
      ...(options.limitsConnections ? connectionRules(names) : []),
      ...allow.map((range) => `-d ${range} -j RETURN`),
      ...dns,
      ...CLOSED.map((range) => `-d ${range} -j DROP`),
      `-p tcp --dport ${SMTP} -j DROP`,
    ],
  };
}

/** Drops new connections above the limits of their pod. The rate first: the other match searches all open connections. */
function connectionRules({ bridges }: RuleNames): string[] {
  const { open, perSecond, burst } = CONNECTION_LIMITS;
  const rate = `--hashlimit-above ${perSecond}/sec --hashlimit-burst ${burst}`;
  return [
    `-m hashlimit ${rate} --hashlimit-mode srcip --hashlimit-name ${bridges}-new -j DROP`,
    `-m connlimit --connlimit-above ${open} --connlimit-mask 32 --connlimit-saddr -j DROP`,
  ];
}

/** Pods have no IPv6. These rules apply if another program assigns them addresses. */
export const IPV6_RULES: ChainRules = { input: ['-j DROP'], forward: ['-j DROP'] };

/** The relevant lines of `iptables -S`. */
export type Listing = {
  input: string[];
  forward: string[];
  /** Jumps to the agent's chains. `inFront` is true if no other program's rule precedes the jump. */
  jumps: { parent: string; chain: string; found: string[]; inFront: boolean }[];
};

export function readListing(text: string, names: RuleNames): Listing {
  const lines = text.split('\n');
  const rulesOf = (chain: string) => lines.filter((line) => line.startsWith(`-A ${chain} `));
  const jumpOf = (parent: string, chain: string) => {
    const rules = rulesOf(parent);
    const firstForeign = rules.findIndex((rule) => !rule.includes(` -j ${CHAIN_PREFIX}`));
    const front = firstForeign === -1 ? rules : rules.slice(0, firstForeign);
    const isJump = (rule: string) => rule === jumpRule(parent, chain, names);
    return { parent, chain, found: rules.filter(isJump), inFront: front.some(isJump) };
  };
  return {
    input: rulesOf(names.input),
    forward: rulesOf(names.forward),
    jumps: [jumpOf('INPUT', names.input), jumpOf('FORWARD', names.forward)],
  };
}

/** Returns true if the rules limit the connections of pods. */
export function limitsConnections({ forward }: Listing): boolean {
  return forward.some((rule) => rule.includes('-m connlimit '));
}

/** Replaces the chains' rules and inserts missing jumps in front, in one transaction. */
export function restoreText(rules: ChainRules, listing: Listing, names: RuleNames): string {
  const jumps = listing.jumps
    .filter((jump) => !jump.inFront)
    .flatMap(({ parent, chain, found }) => [
      ...found.map((rule) => rule.replace('-A', '-D')),
      jumpRule(parent, chain, names).replace(`-A ${parent}`, `-I ${parent} 1`),
    ]);
  return transaction([
    `:${names.input} - [0:0]`,
    `:${names.forward} - [0:0]`,
    ...rules.input.map((rule) => `-A ${names.input} ${rule}`),
    ...rules.forward.map((rule) => `-A ${names.forward} ${rule}`),
    ...jumps,
  ]);
}

/** Text that removes the jumps and chains. It declares the chains first, so that it succeeds if they do not exist. */
export function removalText(listing: Listing, names: RuleNames): string {
  return transaction([
    `:${names.input} - [0:0]`,
    `:${names.forward} - [0:0]`,
    ...listing.jumps.flatMap(({ found }) => found).map((rule) => rule.replace('-A', '-D')),
    `-X ${names.input}`,
    `-X ${names.forward}`,
  ]);
}

function jumpRule(parent: string, chain: string, names: RuleNames): string {
  return `-A ${parent} -i ${names.bridges}+ -j ${chain}`;
}

function transaction(lines: readonly string[]): string {
  return [`*${TABLE}`, ...lines, 'COMMIT', ''].join('\n');
}
