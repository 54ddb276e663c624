/** The rules of pods as iptables-restore takes them, and what `iptables -S` says of them. Pure. */
import { BENCHMARK_RANGE, NON_PUBLIC_IPV4 } from '#shared/http/addresses.ts';

/**
 * Not `filter`, whose DOCKER-USER chain would be the usual place: the engine unhooks that chain for a
 * moment whenever it makes a network, which leaves all pods open. Nobody else's accept comes before these.
 */
export const TABLE = 'mangle';

/** The names that one set of rules goes by; tests use others than the hosts'. */
export type RuleNames = { input: string; forward: string; bridges: string };

export const RULE_NAMES: RuleNames = {
  input: 'PODWRIGHT-INPUT',
  forward: 'PODWRIGHT-FORWARD',
  bridges: 'pw',
};

/** How answers are told from new connections; kernels differ in the modules that they have. Best first. */
export const REPLIES: readonly string[] = [
  '-m conntrack --ctstate RELATED,ESTABLISHED',
  '-m state --state RELATED,ESTABLISHED',
];

/** Every name of ours begins so: jumps to chains of ours may stand before each other. */
const OURS = 'PODWRIGHT-';

/** Where no pod is let, whatever it looks for there. */
const CLOSED = [...NON_PUBLIC_IPV4, BENCHMARK_RANGE];
const SMTP = 25;
const DNS = 53;

export type ChainRules = { input: string[]; forward: string[] };

/** What a packet from a pod meets: `allow` are ranges, `resolvers` addresses that may be asked for names. */
export function rulesForIpv4(options: {
  names: RuleNames;
  allow: readonly string[];
  resolvers: readonly string[];
  replies: string;
}): ChainRules {
  const { names, allow, resolvers, replies } = options;
  const dns = resolvers.flatMap((address) =>
    ['udp', 'tcp'].map((protocol) => `-d ${address} -p ${protocol} --dport ${DNS} -j RETURN`),
  );
  // RETURN, not ACCEPT: what the host's own rules and the engine's forbid stays forbidden.
  return {
    input: [`${replies} -j RETURN`, ...dns, '-j DROP'],
    forward: [
      `${replies} -j RETURN`,
      `-o ${names.bridges}+ -j DROP`,
      ...allow.map((range) => `-d ${range} -j RETURN`),
      ...dns,
      ...CLOSED.map((range) => `-d ${range} -j DROP`),
      `-p tcp --dport ${SMTP} -j DROP`,
    ],
  };
}

/** Pods have no IPv6; these rules stand for the day when something gives them some. */
export const IPV6_RULES: ChainRules = { input: ['-j DROP'], forward: ['-j DROP'] };

/** The lines of `iptables -S` that matter here. */
export type Listing = {
  input: string[];
  forward: string[];
  /** Jumps to our chains, as they stand; `inFront` when nothing but jumps of ours precede one. */
  jumps: { parent: string; chain: string; found: string[]; inFront: boolean }[];
};

export function readListing(text: string, names: RuleNames): Listing {
  const lines = text.split('\n');
  const rulesOf = (chain: string) => lines.filter((line) => line.startsWith(`-A ${chain} `));
  const jumpOf = (parent: string, chain: string) => {
    const rules = rulesOf(parent);
    const firstForeign = rules.findIndex((rule) => !rule.includes(` -j ${OURS}`));
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

/** Fills the chains anew and puts missing jumps in front, all in one transaction. */
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

/** Takes jumps and chains away; declaring the chains first makes it work when they are gone already. */
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
