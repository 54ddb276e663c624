/** The checks of the ways to and from a host. */
import type { Check } from './check.ts';
import { row, SAY_AGAIN } from './check-row.ts';
import { judgeEgress, judgeTemplates } from './egress.check.ts';
import { judgeFirewall } from './isolation.check.ts';
import { judgeBandwidth } from './line.check.ts';
import { judgePorts } from './ports.check.ts';

export const NETWORK_CHECKS: readonly Check[] = [
  row({
    id: 'ports',
    detects: 'ports of pods that nobody reaches',
    required: 'sampled ports of the range answer from outside',
    category: 'env',
    isTrial: true,
    judge: judgePorts,
    remedies: {
      PORTS_CLOSED: 'Forward the range of pod ports (AGENT_PORT_RANGE) to the host.',
      PORTS_PARTIAL: 'Forward the whole range of pod ports, each to the same number.',
      PORTS_REFUSED: SAY_AGAIN,
    },
  }),
  row({
    id: 'egress',
    detects: 'a host that reaches no registry',
    required: 'the engine learns the digest of an image',
    category: 'env',
    isTrial: true,
    judge: judgeEgress,
    remedies: {
      EGRESS_BLOCKED: 'Let the host open connections to the internet.',
      REGISTRY_UNREACHABLE: 'Try `docker pull hello-world`, and mend the engine’s proxy or mirror.',
    },
  }),
  row({
    id: 'template_cache',
    detects: 'a host that cannot start the templates of the market',
    required: 'their images are there, or to be had from their registries',
    category: 'env',
    mode: 'shadow',
    isTrial: true,
    judge: judgeTemplates,
    remedies: { TEMPLATE_NOT_CACHED: 'Try `docker pull` with the image that is named.' },
  }),
  row({
    id: 'bandwidth',
    detects: 'a slow line',
    required: 'a line as fast as the policy says, both ways, that changes nothing',
    category: 'env',
    isTrial: true,
    judge: judgeBandwidth,
    remedies: {
      BANDWIDTH_LOW: 'Check the uplink of the host, and what else uses it.',
      BANDWIDTH_FALSE: 'Let nothing between validator and agent change what is sent.',
      BANDWIDTH_REFUSED: SAY_AGAIN,
    },
  }),
  row({
    id: 'firewall',
    detects: 'pods that nothing fences in',
    required: 'the firewall’s rules are in force',
    category: 'runtime',
    mode: 'shadow',
    whileRented: true,
    judge: judgeFirewall,
    remedies: { NETWORK_POLICY_DRIFT: 'Run the agent as root where iptables is, and restart it.' },
  }),
];
