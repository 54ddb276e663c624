import { expect, it } from 'vitest';
import {
  DIALECTS,
  IPV6_RULES,
  RULE_NAMES,
  readListing,
  removalText,
  restoreText,
  rulesForIpv4,
} from './firewall-rules.ts';

const BARE = `-P INPUT ACCEPT
-P FORWARD DROP
-N DOCKER-USER
-A INPUT -i eth0 -j ufw-before-input
-A FORWARD -j DOCKER-USER
-A DOCKER-USER -j RETURN`;
const [dialect = { replies: '', refuse: '' }] = DIALECTS;
const names = RULE_NAMES;
const rules = rulesForIpv4({
  names,
  allow: ['10.20.0.0/24'],
  resolvers: ['10.255.255.53'],
  dialect,
});

it('writes one transaction that fills both chains and puts the jumps first', () => {
  expect(restoreText(rules, readListing(BARE, names), names)).toBe(`*filter
:PODWRIGHT-INPUT - [0:0]
:PODWRIGHT-FORWARD - [0:0]
-A PODWRIGHT-INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A PODWRIGHT-INPUT -d 10.255.255.53 -p udp --dport 53 -j ACCEPT
-A PODWRIGHT-INPUT -d 10.255.255.53 -p tcp --dport 53 -j ACCEPT
-A PODWRIGHT-INPUT -j REJECT
-A PODWRIGHT-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN
-A PODWRIGHT-FORWARD -o pw+ -j DROP
-A PODWRIGHT-FORWARD -d 10.20.0.0/24 -j RETURN
-A PODWRIGHT-FORWARD -d 10.255.255.53 -p udp --dport 53 -j RETURN
-A PODWRIGHT-FORWARD -d 10.255.255.53 -p tcp --dport 53 -j RETURN
-A PODWRIGHT-FORWARD -d 0.0.0.0/8 -j DROP
-A PODWRIGHT-FORWARD -d 10.0.0.0/8 -j DROP
-A PODWRIGHT-FORWARD -d 100.64.0.0/10 -j DROP
-A PODWRIGHT-FORWARD -d 127.0.0.0/8 -j DROP
-A PODWRIGHT-FORWARD -d 169.254.0.0/16 -j DROP
-A PODWRIGHT-FORWARD -d 172.16.0.0/12 -j DROP
-A PODWRIGHT-FORWARD -d 192.168.0.0/16 -j DROP
-A PODWRIGHT-FORWARD -d 198.18.0.0/15 -j DROP
-A PODWRIGHT-FORWARD -d 224.0.0.0/4 -j DROP
-A PODWRIGHT-FORWARD -d 240.0.0.0/4 -j DROP
-A PODWRIGHT-FORWARD -p tcp --dport 25 -j DROP
-I INPUT 1 -i pw+ -j PODWRIGHT-INPUT
-I DOCKER-USER 1 -i pw+ -j PODWRIGHT-FORWARD
COMMIT
`);
});

it('moves a jump that something else has overtaken, and leaves one behind jumps of ours', () => {
  const overtaken = readListing(
    `-A FORWARD -j DOCKER-USER
-A INPUT -j ACCEPT
-A INPUT -i pw+ -j PODWRIGHT-INPUT
-A DOCKER-USER -i px+ -j PODWRIGHT-X
-A DOCKER-USER -i pw+ -j PODWRIGHT-FORWARD
-A DOCKER-USER -j RETURN`,
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

it('goes by the built-in chain where the engine has none of its own', () => {
  const listing = readListing('-P FORWARD ACCEPT\n-N DOCKER-USER', names);
  expect(restoreText(IPV6_RULES, listing, names)).toContain('-I FORWARD 1 -i pw+');
});

it('takes away exactly what it put there', () => {
  const listing = readListing(`${BARE}\n-A INPUT -i pw+ -j PODWRIGHT-INPUT`, names);
  expect(removalText(listing, names).split('\n').slice(3)).toEqual([
    '-D INPUT -i pw+ -j PODWRIGHT-INPUT',
    '-X PODWRIGHT-INPUT',
    '-X PODWRIGHT-FORWARD',
    'COMMIT',
    '',
  ]);
});
