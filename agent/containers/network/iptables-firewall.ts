/** Firewall over iptables and ip6tables, legacy or nftables. */

import { readFile } from 'node:fs/promises';
import { messageOf } from '#shared/runtime/errors.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';
import { type Firewall, FirewallUnavailable } from './firewall.ts';
import {
  type ChainRules,
  IPV6_RULES,
  type Listing,
  REPLIES,
  RULE_NAMES,
  type RuleNames,
  readListing,
  removalText,
  restoreText,
  rulesForIpv4,
  TABLE,
} from './firewall-rules.ts';

/** Timeout of a command, which may wait for another program to release the xtables lock. */
const TIMEOUT_MS = 5_000;
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
/** Maximum attempts to write the rules: if two agents change them at the same time, one of them must retry. */
const MAX_ATTEMPTS = 3;

/** The kernel's listing after `wanted` was last applied. */
type Applied = { wanted: string; listing: Listing };

export function createIptablesFirewall(options: {
  runCommand: RunCommand;
  /** Private ranges that pods may reach. */
  allow: readonly string[];
  /** DNS servers that the engine queries for pods. */
  resolvers(): Promise<readonly string[]>;
  /** True: the host has IPv6. */
  hasIpv6: boolean;
  names?: RuleNames;
}): Firewall {
  const { allow, hasIpv6, names = RULE_NAMES } = options;

  async function run(program: string, args: readonly string[], input?: string): Promise<string> {
    const bounds = { timeoutMs: TIMEOUT_MS, maxOutputBytes: MAX_OUTPUT_BYTES };
    const result = await options
      .runCommand(program, args, input === undefined ? bounds : { ...bounds, input })
      .catch((cause: unknown) => {
        throw new FirewallUnavailable(`${program} cannot be run (${messageOf(cause)})`, { cause });
      });
    if (result.exitCode === 0) return result.stdout;
    const reason = result.stderr.trim() || result.ended || `exit status ${result.exitCode}`;
    throw new FirewallUnavailable(`${program}: ${reason}`);
  }

  const list = async (program: string) =>
    readListing(await run(program, ['-w', '-t', TABLE, '-S']), names);
  const restore = (program: string, text: string) =>
    run(`${program}-restore`, ['--noflush', '--wait'], text);

  /** `candidates` are ordered best first. The first one that the kernel accepts is used. */
  function createFamily(program: string) {
    let applied: Applied | null = null;

    async function put(candidates: readonly ChainRules[], found: Listing): Promise<Listing> {
      let refusal: unknown;
      for (const rules of candidates) {
        try {
          await restore(program, restoreText(rules, found, names));
          const listing = await list(program);
          if (isWhole(listing, rules)) return listing;
          throw new FirewallUnavailable(`${program}: the rules were removed at once`);
        } catch (error) {
          refusal = error;
        }
      }
      throw refusal;
    }

    async function replace(candidates: readonly ChainRules[], first: Listing): Promise<Listing> {
      let found = first;
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await put(candidates, found);
        } catch (error) {
          if (attempt >= MAX_ATTEMPTS) throw error;
          found = await list(program);
        }
      }
    }

    return async (candidates: readonly ChainRules[]): Promise<number> => {
      const wanted = JSON.stringify(candidates);
      const found = await list(program);
      const drift = applied?.wanted === wanted ? driftBetween(applied.listing, found) : null;
      if (drift === 0) return 0;
      applied = { wanted, listing: await replace(candidates, found) };
      return drift ?? 0;
    };
  }

  const assertIpv4 = createFamily('iptables');
  const assertIpv6 = createFamily('ip6tables');

  return {
    bridgePrefix: names.bridges,
    async assert() {
      const resolvers = await options.resolvers();
      const ipv4 = [true, false].flatMap((limitsConnections) =>
        REPLIES.map((replies) =>
          rulesForIpv4({ names, allow, resolvers, replies, limitsConnections }),
        ),
      );
      const drifts = await Promise.all([assertIpv4(ipv4), hasIpv6 ? assertIpv6([IPV6_RULES]) : 0]);
      return { drift: drifts.reduce((sum, lines) => sum + lines, 0) };
    },
    async remove() {
      for (const program of hasIpv6 ? ['iptables', 'ip6tables'] : ['iptables']) {
        await restore(program, removalText(await list(program), names));
      }
    },
  };
}

function isWhole(listing: Listing, rules: ChainRules): boolean {
  return (
    listing.jumps.every((jump) => jump.inFront) &&
    listing.input.length === rules.input.length &&
    listing.forward.length === rules.forward.length
  );
}

/** Number of missing and added lines and of jumps that are missing or not in front; 0 without changes. */
function driftBetween(before: Listing, now: Listing): number {
  const changed = (a: readonly string[], b: readonly string[]) => {
    const [inA, inB] = [new Set(a), new Set(b)];
    const lines = [...inA.symmetricDifference(inB)].length;
    return lines === 0 && a.join() !== b.join() ? 1 : lines;
  };
  const lostJumps = now.jumps.filter((jump) => !jump.inFront).length;
  return changed(before.input, now.input) + changed(before.forward, now.forward) + lostJumps;
}

/** Docker reads the same two files. systemd-resolved writes its upstream servers to the second. */
const FILES = ['/etc/resolv.conf', '/run/systemd/resolve/resolv.conf'];
const MAX_RESOLVERS = 8;

/** Returns the host's IPv4 DNS servers outside loopback. The engine itself queries a loopback resolver. */
export async function hostResolvers(): Promise<string[]> {
  const texts = await Promise.all(FILES.map((file) => readFile(file, 'utf8').catch(() => '')));
  return resolversIn(texts.join('\n'));
}

export function resolversIn(text: string): string[] {
  const found = [...text.matchAll(/^\s*nameserver\s+(\d{1,3}(?:\.\d{1,3}){3})\s*$/gm)];
  const addresses = found.flatMap(([, address = '']) =>
    address.startsWith('127.') ? [] : [address],
  );
  return [...new Set(addresses)].sort().slice(0, MAX_RESOLVERS);
}
