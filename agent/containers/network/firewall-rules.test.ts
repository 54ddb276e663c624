import { expect, it } from 'vitest';
import {
  IPV6_RULES,
  REPLIES,
  RULE_NAMES,
  readListing,
  removalText,
  restoreText,
  rulesForIpv4,
} from './firewall-rules.ts';

const BARE = `-P INPUT ACCEPT
-P FORWARD ACCEPT
-A INPUT -i eth0 -j MARK --set-xmark 0x1/0x1`;
const [replies = ''] = REPLIES;
const names = RULE_NAMES;
const rules = rulesForIpv4({
  names,
  allow: ['10.20.0.0/24'],
  resolvers: ['10.255.255.53'],
  replies,
  limitsConnections: true,
});

it('writes one transaction that fills both chains and inserts the jumps first', () => {
  expect(restoreText(rules, readListing(BARE, names), names)).toBe(`*mangle
:PODWRIGHT-INPUT - [0:0]
:PODWRIGHT-FORWARD - [0:0]
-A PODWRIGHT-INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN
-A PODWRIGHT-INPUT -d 10.255.255.53 -p udp --dport 53 -j RETURN
-A PODWRIGHT-INPUT -d 10.255.255.53 -p tcp --dport 53 -j RETURN
-A PODWRIGHT-INPUT -j DROP
-A PODWRIGHT-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN
-A PODWRIGHT-FORWARD -o pw+ -j DROP
-A PODWRIGHT-FORWARD -m hashlimit --hashlimit-above 200/sec --hashlimit-burst 1000 --hashlimit-mode srcip --hashlimit-name pw-new -j DROP
-A PODWRIGHT-FORWARD -m connlimit --connlimit-above 4096 --connlimit-mask 32 --connlimit-saddr -j DROP
-A PODWRIGHT-FORWARD -d 10.20.0.0/24 -j RETURN
-A PODWRIGHT-FORWARD -d 10.255.255.53 -p udp --dport 53 -j RETURN
-A PODWRIGHT-FORWARD -d 10.255.255.53 -p tcp --dport 53 -j RETURN
-A PODWRIGHT-FORWARD -d 0.0.0.0/8 -j DROP
-A PODWRIGHT-FORWARD -d 10.0.0.0/8 -j DROP
-A PODWRIGHT-FORWARD -d 100.64.0.0/10 -j DROP
-A PODWRIGHT-FORWARD -d 127.0.0.0/8 -j DROP
-A PODWRIGHT-FORWARD -d 168.63.129.16/32 -j DROP
-A PODWRIGHT-FORWARD -d 169.254.0.0/16 -j DROP
-A PODWRIGHT-FORWARD -d 172.16.0.0/12 -j DROP
-A PODWRIGHT-FORWARD -d 192.168.0.0/16 -j DROP
-A PODWRIGHT-FORWARD -d 224.0.0.0/4 -j DROP
-A PODWRIGHT-FORWARD -d 240.0.0.0/4 -j DROP
-A PODWRIGHT-FORWARD -d 198.18.0.0/15 -j DROP
-A PODWRIGHT-FORWARD -p tcp --dport 25 -j DROP
-I INPUT 1 -i pw+ -j PODWRIGHT-INPUT
-I FORWARD 1 -i pw+ -j PODWRIGHT-FORWARD
COMMIT
`);
});

it('moves a jump in front of foreign rules, but not in front of the agent’s other jumps', () => {
  const overtaken = readListing(
    `-A INPUT -j ACCEPT
-A INPUT -i pw+ -j PODWRIGHT-INPUT
-A FORWARD -i px+ -j PODWRIGHT-X
-A FORWARD -i pw+ -j PODWRIGHT-FORWARD
-A FORWARD -j RETURN`,
    names,
  );
  const lines = restoreText(IPV6_RULES, overtaken, names).split('\n');
  expect(lines.slice(-5)).toEqual([
    '-A PODWRIGHT-FORWARD -j DROP',
    '-D INPUT -i pw+ -j PODWRIGHT-INPUT',
    '-I INPUT 1 -i pw+ -j PODWRIGHT-INPUT',
    'COMMIT',
    '',
  ]);
});

it('removes exactly what it added', () => {
  const listing = readListing(`${BARE}\n-A INPUT -i pw+ -j PODWRIGHT-INPUT`, names);
  expect(removalText(listing, names).split('\n').slice(3)).toEqual([
    '-D INPUT -i pw+ -j PODWRIGHT-INPUT',
    '-X PODWRIGHT-INPUT',
    '-X PODWRIGHT-FORWARD',
    'COMMIT',
    '',
  ]);
});
