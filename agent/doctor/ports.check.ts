/** Checks of the agent's port, the ports of pods, and the reachability of the agent from outside. */
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { z } from 'zod';
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
import { type Observed, observe } from '#shared/check/observe.ts';
import { isPublicAddress } from '#shared/http/addresses.ts';
import { hostAndPort, localHost } from '#shared/http/listen.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { explainUrl } from '#shared/tls/port-protocol.ts';
import { createSecureTransport, PLAIN_TRANSPORT } from '#shared/tls/transport.ts';
import { isLocalRegistry as isLocalName } from '../containers/images/image-name.ts';
import type { PortProbe, PortRange } from '../leases/port.service.ts';

export type PortFacts = {
  agentHost: string;
  agentPort: number;
  /** True if the agent serves TLS. */
  secure: boolean;
  range: PortRange;
  executorId: string | null;
  /** The kernel's range for outgoing connections. */
  ephemeral: Observed<PortRange>;
  /** Executor id of the agent that responds at the port on this host. */
  local: Observed<string>;
  /** True if a program listens at the port. */
  isListening: boolean;
  /** Ports of the range on which a program listens. */
  listening: Observed<readonly number[]>;
  /** Ports that could not be bound; null if none were tried because the agent may run. */
  refused: readonly number[] | null;
  tried: number;
  /** The agent's response at the host's public address; null if no address is known. */
  outside: { address: string; answered: Observed<string> } | null;
};

const EPHEMERAL = '/proc/sys/net/ipv4/ip_local_port_range';
const ROUTES = '/proc/net/route';
const SOCKETS = ['tcp', 'tcp6', 'udp', 'udp6'].map((name) => `/proc/net/${name}`);
/** States in /proc/net/tcp and /proc/net/udp; unconnected UDP sockets are always in 07. */
const LISTENING = { tcp: '0A', udp: '07' };
const SAMPLE = 24;
const DIAL_MS = 3_000;
const READ_MS = 2_000;
/** Share of used ports above which launches begin to fail for lack of free ports. */
const MOST_IN_USE = 0.8;
const VersionAnswer = z.object({ executor_id: z.string() });

/** Binds sample ports briefly, unless `agentMayRun`: a launch of a pod could need one of them. */
export async function readPortFacts(options: {
  clock: Clock;
  agentHost: string;
  agentPort: number;
  secure: boolean;
  range: PortRange;
  executorId: string | null;
  agentMayRun: boolean;
  /** The host's public address; null for the address of the interface with the default route. */
  address: string | null;
  probePort: PortProbe;
}): Promise<PortFacts> {
  const { clock, agentHost, agentPort, secure, range, executorId } = options;
  const sample = options.agentMayRun ? [] : sampleOf(range);
  const address = options.address ?? (await ownAddress());
  const [ephemeral, listening, free, local, outside] = await Promise.all([
    observe(clock, READ_MS, async () => rangeIn(await readFile(EPHEMERAL, 'utf8'))),
    observe(clock, READ_MS, readListening),
    Promise.all(sample.map(options.probePort)),
    agentAt(options, localHost(agentHost)),
    address === null ? null : agentAt(options, address),
  ]);
  const inRange = (port: number) => port >= range.first && port <= range.last;
  const isListening = 'value' in listening && listening.value.includes(agentPort);
  return {
    agentHost,
    agentPort,
    secure,
    range,
    executorId,
    ephemeral,
    local,
    isListening,
    listening: 'value' in listening ? { value: listening.value.filter(inRange) } : listening,
    refused: options.agentMayRun ? null : sample.filter((_, index) => free[index] === false),
    tried: sample.length,
    outside: outside === null || address === null ? null : { address, answered: outside },
  };
}

type Listener = { clock: Clock; agentPort: number; secure: boolean };

/**
 * Returns the executor id of the agent at `host`. Accepts any certificate: validators check the key. A problem names what
 * the port answers.
 */
async function agentAt(listener: Listener, host: string): Promise<Observed<string>> {
  const { clock, agentPort, secure } = listener;
  const url = new URL(`${secure ? 'https' : 'http'}://${hostAndPort(host, agentPort)}/version`);
  const answered = await readExecutorId(listener, url);
  if ('value' in answered) return answered;
  const cause = await explainUrl(clock, url.href, 'the doctor');
  return { ...answered, problem: `${answered.problem}; ${cause}` };
}

function readExecutorId({ clock, secure }: Listener, url: URL): Promise<Observed<string>> {
  return observe(clock, DIAL_MS, async () => {
    const transport = secure ? createSecureTransport({ trust: 'anybody', clock }) : PLAIN_TRANSPORT;
    try {
      const init = { method: 'GET', headers: {}, signal: clock.deadline(DIAL_MS) };
      const response = await transport.fetch(url, init);
      const answer = VersionAnswer.safeParse(await response.json().catch(() => undefined));
      if (!answer.success) throw new Error('the answer to /version is not that of an agent');
      return answer.data.executor_id;
    } finally {
      transport.close();
    }
  });
}

/** Returns ports spread evenly over the range. */
function sampleOf({ first, last }: PortRange): number[] {
  const count = Math.min(SAMPLE, last - first + 1);
  const step = (last - first) / Math.max(1, count - 1);
  return Array.from({ length: count }, (_, index) => first + Math.floor(index * step));
}

async function readListening(): Promise<number[]> {
  const tables = await Promise.all(
    SOCKETS.map(async (file) => ({
      state: file.includes('udp') ? LISTENING.udp : LISTENING.tcp,
      // Hosts without IPv6 lack the tcp6 and udp6 files.
      text: await readFile(file, 'utf8').catch(() => ''),
    })),
  );
  return [...new Set(tables.flatMap(({ text, state }) => listeningIn(text, state)))];
}

/** Returns the local ports of the sockets in `state`, from a table in /proc/net. */
export function listeningIn(text: string, state: string): number[] {
  const rows = text.matchAll(
    /^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} ([0-9A-F]{2})/gm,
  );
  return [...rows].flatMap(([, port = '', found]) =>
    found === state ? [Number.parseInt(port, 16)] : [],
  );
}

function rangeIn(text: string): PortRange {
  const [first = 0, last = 0] = text.trim().split(/\s+/).map(Number);
  return { first, last };
}

/** Returns the IPv4 address of the interface with the default route. */
async function ownAddress(): Promise<string | null> {
  const text = await readFile(ROUTES, 'utf8').catch(() => '');
  const name = /^(\S+)\t0{8}\t/m.exec(text)?.[1];
  const addresses = name === undefined ? [] : (networkInterfaces()[name] ?? []);
  return addresses.find(({ family }) => family === 'IPv4')?.address ?? null;
}

export const PORT_CHECKS: readonly DoctorCheck<PortFacts>[] = [
  {
    id: 'agent-port',
    detects: 'an agent port that is taken or within the range of pods',
    required: 'AGENT_PORT is outside AGENT_PORT_RANGE and free, or this agent answers at it',
    judge: agentPort,
  },
  {
    id: 'pod-ports-ephemeral',
    detects: 'pod ports that outgoing connections take',
    required: 'AGENT_PORT_RANGE is outside the kernel’s range for outgoing connections',
    judge: ephemeral,
  },
  {
    id: 'pod-ports-free',
    detects: 'pod ports that other programs use',
    required: `sampled ports can be bound, and at most ${MOST_IN_USE * 100} % of the range is in use`,
    judge: podPorts,
  },
  {
    id: 'reachability',
    detects: 'an agent that validators cannot reach',
    required: 'the agent answers at the host’s outside address',
    judge: reachability,
  },
];

function agentPort(facts: PortFacts): Outcome {
  const { agentPort: port, local, executorId, range } = facts;
  if (port >= range.first && port <= range.last) {
    return fail(`AGENT_PORT ${port} is in AGENT_PORT_RANGE`, 'choose a port outside the range');
  }
  if ('value' in local) {
    if (local.value === executorId) return ok(`this agent answers at ${port}`);
    return fail(
      `the agent of another executor (${local.value}) answers at ${port}`,
      'set a different AGENT_PORT for each agent of a host, or correct AGENT_EXECUTOR_ID',
    );
  }
  if (facts.isListening) {
    const remedy = `run the doctor with the agent’s variables (AGENT_TLS); or find the listener: ss -ltnp 'sport = :${port}'; stop it or set AGENT_PORT`;
    const measured = `a program listens at ${port} that does not answer as an agent: ${local.problem}`;
    return unlessTimedOut(local, fail(measured, remedy));
  }
  return ok(`${port} is free; the agent is not running`);
}

function ephemeral({ ephemeral: observed, range }: PortFacts): Outcome {
  if ('problem' in observed) {
    return unread(observed, `the kernel’s range cannot be read: ${observed.problem}`);
  }
  const { first, last } = observed.value;
  const pods = `${range.first}-${range.last}`;
  if (range.last < first || range.first > last) {
    return ok(`ports of pods (${pods}) are outside the kernel’s range (${first}-${last})`);
  }
  return warn(
    `ports of pods (${pods}) overlap the kernel’s range (${first}-${last}): launches will find ports taken`,
    `set AGENT_PORT_RANGE below ${first}, or: sysctl -w net.ipv4.ip_local_reserved_ports=${pods}`,
  );
}

function podPorts({ listening, refused, tried, range }: PortFacts): Outcome {
  const size = range.last - range.first + 1;
  if (refused !== null && refused.length > 0) {
    const measured = `${refused.length} of ${tried} ports tried are taken: ${refused.slice(0, 5).join(', ')}`;
    const remedy = 'find the listeners: ss -lntup; move them or AGENT_PORT_RANGE';
    return refused.length === tried ? fail(measured, remedy) : warn(measured, remedy);
  }
  if ('problem' in listening) {
    return unread(listening, `listeners cannot be read: ${listening.problem}`);
  }
  const inUse = `${listening.value.length} of ${size} ports have a listener`;
  if (listening.value.length > size * MOST_IN_USE) {
    return warn(inUse, 'widen AGENT_PORT_RANGE, and open the new ports in the firewall');
  }
  if (refused === null) return ok(`${inUse}, including the ports of pods`);
  return ok(`${tried} ports of ${range.first}-${range.last} tried, all free (TCP and UDP)`);
}

const FROM_INSIDE =
  'this host cannot find out whether a firewall or NAT in front of it allows inbound connections';

function reachability(facts: PortFacts): Outcome {
  const { outside, executorId, local, agentPort: port, agentHost, secure } = facts;
  if (agentHost.startsWith('127.') || agentHost === '::1' || agentHost === 'localhost') {
    return warn(
      `AGENT_HOST=${agentHost}: validators on other hosts cannot reach this agent`,
      'set AGENT_HOST=0.0.0.0 unless everything runs on this machine',
    );
  }
  if (outside === null) {
    return unknown('this host has no default route', 'name its address: doctor --address ADDRESS');
  }
  if ('problem' in local || local.value !== executorId) {
    const problem = 'problem' in local ? local : { problem: 'another agent answers' };
    const measured = `this executor’s agent does not answer on this host: ${problem.problem}`;
    return unread(problem, measured, 'start the agent, then run the doctor again');
  }
  const place = hostAndPort(outside.address, port);
  const { answered } = outside;
  if ('problem' in answered) {
    const remedy = `allow TCP ${port} and the ports of pods in this host’s firewall, to ${outside.address}`;
    return unlessTimedOut(
      answered,
      fail(`nothing answers at ${place} (${answered.problem})`, remedy),
    );
  }
  if (answered.value !== executorId) {
    const remedy = 'correct the address or the port forwarding';
    return fail(`another executor answers at ${place}: ${answered.value}`, remedy);
  }
  // The certificate is self-signed, so curl cannot verify it.
  const command = secure ? 'curl -k https://' : 'curl http://';
  const tryFrom = (address: string) =>
    `from another machine: ${command}${address}/version, and a pod’s port likewise`;
  if (isPrivate(outside.address)) {
    const measured = `answers at ${place}, a private address: clients outside this network need NAT, and ${FROM_INSIDE}`;
    return unknown(measured, tryFrom(`PUBLIC-ADDRESS:${port}`));
  }
  return { ...ok(`answers at ${place} from this host; ${FROM_INSIDE}`), remedy: tryFrom(place) };
}

/** `host`: an address, or a name from `--address`. */
function isPrivate(host: string): boolean {
  return isIP(host) === 0 ? isLocalName(host) : !isPublicAddress(host);
}
