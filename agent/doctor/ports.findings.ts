/** Judges the agent's port, the ports of pods, and what can be told of reaching them (agent reference 8). Pure. */

import { isIP } from 'node:net';
import { type Finding, fail, ok, unknown, warn } from '#shared/check/finding.ts';
import { isPublicAddress } from '#shared/http/addresses.ts';
import { placeOf } from '#shared/http/listen.ts';
import { isLocalRegistry as isLocalName } from '../containers/images/image-name.ts';
import type { PortFacts } from './ports.facts.ts';

/** More than this share in use, and pods begin to get no ports. */
const MOST_IN_USE = 0.8;

export function portFindings(facts: PortFacts): Finding[] {
  return [agentPort(facts), ephemeral(facts), podPorts(facts), reachability(facts)];
}

function agentPort({ agentPort: port, answers, executorId, range }: PortFacts): Finding {
  const id = 'agent-port';
  if (port >= range.first && port <= range.last) {
    return fail(
      id,
      `AGENT_PORT ${port} lies in AGENT_PORT_RANGE`,
      'choose a port outside the range',
    );
  }
  if (answers.executorId !== null && answers.executorId === executorId) {
    return ok(id, `this agent answers at ${port}`);
  }
  if (answers.executorId !== null) {
    const what = `the agent of another executor (${answers.executorId}) answers at ${port}`;
    return fail(
      id,
      what,
      'give each agent of a host its own AGENT_PORT, or correct AGENT_EXECUTOR_ID',
    );
  }
  if (answers.listening) {
    const remedy = `see who: ss -ltnp 'sport = :${port}'; stop it or set AGENT_PORT`;
    return fail(id, `something that is no agent listens at ${port}`, remedy);
  }
  return ok(id, `${port} is free; the agent is not running`);
}

function ephemeral({ ephemeral: told, range }: PortFacts): Finding {
  const id = 'pod-ports-ephemeral';
  if ('problem' in told)
    return unknown(id, `the kernel’s own range cannot be read: ${told.problem}`);
  const { first, last } = told.value;
  const pods = `${range.first}-${range.last}`;
  if (range.last < first || range.first > last) {
    return ok(id, `ports of pods (${pods}) lie outside the kernel’s own (${first}-${last})`);
  }
  return warn(
    id,
    `ports of pods (${pods}) overlap the kernel’s own (${first}-${last}): launches will meet taken ports`,
    `set AGENT_PORT_RANGE below ${first}, or: sysctl -w net.ipv4.ip_local_reserved_ports=${pods}`,
  );
}

function podPorts({ listening, refused, tried, range }: PortFacts): Finding {
  const id = 'pod-ports-free';
  const size = range.last - range.first + 1;
  if (refused !== null && refused.length > 0) {
    const what = `${refused.length} of ${tried} ports tried are taken: ${refused.slice(0, 5).join(', ')}`;
    const remedy = 'see by whom: ss -lntup; move it or AGENT_PORT_RANGE';
    return refused.length === tried ? fail(id, what, remedy) : warn(id, what, remedy);
  }
  if ('problem' in listening) return unknown(id, `listeners cannot be read: ${listening.problem}`);
  const inUse = `${listening.value.length} of ${size} ports are listened on`;
  if (listening.value.length > size * MOST_IN_USE) {
    return warn(id, inUse, 'widen AGENT_PORT_RANGE, in the firewall too');
  }
  if (refused === null) return ok(id, `${inUse}, those of pods included`);
  return ok(id, `${tried} ports of ${range.first}-${range.last} tried, all free (TCP and UDP)`);
}

const FROM_INSIDE =
  'whether a firewall or NAT before this host lets others in cannot be known from inside';

function reachability({
  outside,
  executorId,
  answers,
  agentPort: port,
  agentHost,
  secure,
}: PortFacts): Finding {
  const id = 'reachability';
  if (agentHost.startsWith('127.') || agentHost === '::1' || agentHost === 'localhost') {
    const what = `AGENT_HOST=${agentHost}: no validator reaches this agent from elsewhere`;
    return warn(id, what, 'set AGENT_HOST=0.0.0.0 unless everything runs on this machine');
  }
  if (outside === null) {
    return unknown(
      id,
      'this host has no default route',
      'name its address: doctor --address ADDRESS',
    );
  }
  if (answers.executorId !== executorId || executorId === null) {
    return unknown(
      id,
      'the agent does not run, so nothing was dialled',
      'start it, then ask again',
    );
  }
  const place = placeOf(outside.address, port);
  const { answered } = outside;
  if ('problem' in answered) {
    const remedy = `allow TCP ${port} and the ports of pods in this host’s firewall, to ${outside.address}`;
    return fail(id, `nothing answers at ${place} (${answered.problem})`, remedy);
  }
  if (answered.value !== executorId) {
    const remedy = 'correct the address or the port forwarding';
    return fail(id, `another executor answers at ${place}: ${answered.value}`, remedy);
  }
  // The certificate is self-made: it is known by its pin, which curl has not.
  const asked = secure ? 'curl -k https://' : 'curl http://';
  const ask = (from: string) =>
    `from another machine: ${asked}${from}/version, and a pod’s port likewise`;
  if (isPrivate(outside.address)) {
    const what = `answers at ${place}, a private address: others need NAT, and ${FROM_INSIDE}`;
    return unknown(id, what, ask(`PUBLIC-ADDRESS:${port}`));
  }
  return { ...ok(id, `answers at ${place} from this host; ${FROM_INSIDE}`), remedy: ask(place) };
}

/** Of an address, or of a name as `--address` may give. */
function isPrivate(host: string): boolean {
  return isIP(host) === 0 ? isLocalName(host) : !isPublicAddress(host);
}
