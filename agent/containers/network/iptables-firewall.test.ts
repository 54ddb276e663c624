import { expect, it } from 'vitest';
import type { CommandResult, RunCommand } from '#shared/runtime/run-command.ts';
import { FirewallUnavailable } from './firewall.ts';
import { createIptablesFirewall, resolversIn } from './iptables-firewall.ts';

const done = (change: Partial<CommandResult> = {}): CommandResult => ({
  exitCode: 0,
  stdout: '',
  stderr: '',
  ended: null,
  ...change,
});

/** A fake packet filter with one table; `refuses` are rules for which it has no module. */
function fakeIptables(refuses: readonly string[] = []) {
  const filter = { lines: ['-P INPUT ACCEPT'], restores: 0 };
  const runCommand: RunCommand = async (program, _args, { input }) => {
    if (program.startsWith('ip6')) throw new Error('not used');
    if (input === undefined) return done({ stdout: filter.lines.join('\n') });
    filter.restores += 1;
    const missing = refuses.find((text) => input.includes(text));
    if (missing !== undefined) return done({ exitCode: 2, stderr: `no module for ${missing}` });
    const chains = [...input.matchAll(/^:(\S+)/gm)].map(([, chain]) => chain);
    const kept = filter.lines.filter(
      (line) => !chains.some((chain) => line.startsWith(`-A ${chain} `)),
    );
    const added = input.split('\n').flatMap((line) => {
      if (line.startsWith('-A')) return [line];
      return line.startsWith('-I') ? [line.replace('-I', '-A').replace(' 1 ', ' ')] : [];
    });
    filter.lines = [...kept, ...added];
    return done();
  };
  return { filter, runCommand };
}

function firewallOf(runCommand: RunCommand, resolvers = async (): Promise<string[]> => []) {
  return createIptablesFirewall({ runCommand, allow: [], resolvers, hasIpv6: false });
}

it('writes the rules once, then only checks them; counts changes by other programs, not by the agent', async () => {
  const { filter, runCommand } = fakeIptables();
  let resolvers: string[] = [];
  const firewall = firewallOf(runCommand, async () => resolvers);
  expect(await firewall.assert()).toEqual({ drift: 0 });
  expect(await firewall.assert()).toEqual({ drift: 0 });
  expect(filter.restores).toBe(1);

  filter.lines = filter.lines.filter(
    (line) => !line.includes('169.254') && !line.includes('-A INPUT'),
  );
  expect(await firewall.assert()).toEqual({ drift: 2 });
  expect(await firewall.assert()).toEqual({ drift: 0 });

  resolvers = ['10.0.0.53'];
  expect(await firewall.assert()).toEqual({ drift: 0 });
  expect(filter.lines.filter((line) => line.includes('10.0.0.53'))).toHaveLength(4);
});

it('uses a match for replies that the kernel supports', async () => {
  const { filter, runCommand } = fakeIptables(['conntrack']);
  await firewallOf(runCommand).assert();
  expect(filter.lines).toContain(
    '-A PODWRIGHT-INPUT -m state --state RELATED,ESTABLISHED -j RETURN',
  );
  expect(filter.lines).toContain('-A PODWRIGHT-INPUT -j DROP');
});

it('limits connections of pods unless the kernel lacks the modules', async () => {
  const { filter, runCommand } = fakeIptables();
  await firewallOf(runCommand).assert();
  expect(filter.lines.filter((line) => line.includes('limit-above'))).toHaveLength(2);
  const old = fakeIptables(['connlimit']);
  await firewallOf(old.runCommand).assert();
  expect(old.filter.lines.filter((line) => line.includes('limit-above'))).toEqual([]);
  expect(old.filter.lines).toContain('-A PODWRIGHT-INPUT -j DROP');
});

it('reports why the firewall is not available', async () => {
  const missing = firewallOf(async () => {
    throw new Error('spawn iptables ENOENT');
  });
  await expect(missing.assert()).rejects.toThrow(FirewallUnavailable);
  await expect(missing.assert()).rejects.toThrow('iptables cannot be run (spawn iptables ENOENT)');
  const denied = firewallOf(async () => done({ exitCode: 4, stderr: 'you must be root' }));
  await expect(denied.assert()).rejects.toThrow('iptables: you must be root');
});

it('returns DNS servers that are not on loopback', () => {
  const text = `# made by hand
search example
nameserver 127.0.0.53
nameserver 10.0.0.2
 nameserver 192.168.1.1 
nameserver fd00::1
nameserver 10.0.0.2
options edns0`;
  expect(resolversIn(text)).toEqual(['10.0.0.2', '192.168.1.1']);
  expect(resolversIn('')).toEqual([]);
});
