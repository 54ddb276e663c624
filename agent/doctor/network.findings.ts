/** Judges packet filter, forwarding and the subnets of pods (agent reference 10). Pure. */

import { type Finding, fail, ok, unknown, warn } from '#shared/check/finding.ts';
import { RULE_NAMES } from '../containers/network/firewall-rules.ts';
import { formatCidr } from '../containers/network/subnets.ts';
import { type NetworkFacts, overlap, wordsOf } from './network.facts.ts';

/** Bridges of the engine's own networks: it keeps off them by itself. */
const ENGINE_BRIDGE = /^(?:docker\d*|br-)/;

export function networkFindings(
  facts: NetworkFacts,
  { agentRuns, required }: { agentRuns: boolean; required: boolean },
): Finding[] {
  return [
    firewall(facts, agentRuns, required),
    forwardPolicy(facts),
    forwarding(facts),
    subnets(facts),
  ];
}

function firewall(facts: NetworkFacts, agentRuns: boolean, required: boolean): Finding {
  const id = 'firewall';
  const { iptables, rules, remarks } = facts;
  if ('problem' in iptables) {
    const what = `iptables cannot be run (${iptables.problem}): pods reach this host and its neighbours`;
    return (required ? fail : warn)(id, what, 'apt install iptables');
  }
  if ('problem' in rules) {
    if (/permission denied|must be root/i.test(rules.problem)) {
      return unknown(
        id,
        `${iptables.value}; its rules show to root only`,
        'run the doctor as root',
      );
    }
    const what = `${iptables.value} does not work: ${rules.problem}`;
    return (required ? fail : warn)(
      id,
      what,
      'modprobe ip_tables nf_tables; iptables -t mangle -S',
    );
  }
  const standing = rules.value.jumps.every(({ inFront }) => inFront);
  if (agentRuns && !standing) {
    const what = `${iptables.value}: the agent runs and its rules do not stand in front`;
    return fail(id, what, 'look at /readyz of the agent; stop what rewrites the table mangle');
  }
  if (/legacy tables present/i.test(remarks)) {
    const what = `${iptables.value}, and rules of iptables-legacy are in force beside it`;
    return warn(
      id,
      what,
      'keep one of the two: update-alternatives --config iptables, then reboot',
    );
  }
  return ok(id, `${iptables.value}${standing ? '; the rules of pods stand' : ''}`);
}

function forwardPolicy({ forwardPolicy: policy }: NetworkFacts): Finding {
  const id = 'forward-policy';
  if ('problem' in policy)
    return unknown(id, 'the chain FORWARD shows to root only', 'run the doctor as root');
  // The engine sets DROP and opens what it publishes; ACCEPT makes this host a router for its neighbours.
  if (policy.value !== 'ACCEPT') return ok(id, `FORWARD: ${policy.value}`);
  const what = 'FORWARD: ACCEPT, so this host passes packets between its networks for anybody';
  return warn(id, what, 'iptables -P FORWARD DROP, and the same in what sets it at boot');
}

function forwarding({ forwarding: on }: NetworkFacts): Finding {
  const id = 'ip-forwarding';
  if ('problem' in on) return unknown(id, `net.ipv4.ip_forward cannot be read: ${on.problem}`);
  if (on.value) return ok(id, 'IPv4 is forwarded');
  const remedy = 'sysctl -w net.ipv4.ip_forward=1, and the line in /etc/sysctl.d/90-podwright.conf';
  return fail(id, 'IPv4 is not forwarded: pods have no network', remedy);
}

function subnets({ routes, pool }: NetworkFacts): Finding {
  const id = 'pod-subnets';
  if ('problem' in routes) return unknown(id, `the routes cannot be read: ${routes.problem}`);
  const name = formatCidr(pool);
  const clashes = routes.value.filter(
    ({ device, range }) => !device.startsWith(RULE_NAMES.bridges) && overlap(range, pool),
  );
  const foreign = clashes.filter(({ device }) => !ENGINE_BRIDGE.test(device));
  const remedy = 'set AGENT_POD_SUBNETS to a private range that no route of this host leads to';
  if (foreign.length > 0) {
    const what = `AGENT_POD_SUBNETS ${name} overlaps ${foreign.map(wordsOf).join(', ')}`;
    return fail(id, `${what}: pods would cut this host off from it`, remedy);
  }
  if (clashes.length > 0) {
    const what = `AGENT_POD_SUBNETS ${name} is shared with networks of Docker: ${clashes.map(wordsOf).join(', ')}`;
    return warn(id, what, remedy);
  }
  return ok(id, `${name} overlaps no route of this host`);
}
