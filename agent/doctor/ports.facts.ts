/** Who has the agent's port and the ports of pods, and whether the agent is reached at the host's own address. */
import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { z } from 'zod';
import { type Told, tell } from '#shared/check/told.ts';
import { localHostOf, placeOf } from '#shared/http/listen.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { createSecureTransport, PLAIN_TRANSPORT } from '#shared/tls/transport.ts';
import type { PortProbe, PortRange } from '../leases/port.service.ts';

export type PortFacts = {
  agentHost: string;
  agentPort: number;
  /** Whether its listener is to serve TLS. */
  secure: boolean;
  range: PortRange;
  executorId: string | null;
  /** What the kernel hands to outgoing connections. */
  ephemeral: Told<PortRange>;
  /** Whose agent answers at the agent's port: an executor id, or null when something else does or nothing. */
  answers: { executorId: string | null; listening: boolean };
  /** Ports of the range that something listens on. */
  listening: Told<readonly number[]>;
  /** Ports that were tried and could not be had; null when not tried, for the agent runs. */
  refused: readonly number[] | null;
  tried: number;
  /** The agent seen from the address that others use; null when none was given or found. */
  outside: { address: string; answered: Told<string> } | null;
};

const EPHEMERAL = '/proc/sys/net/ipv4/ip_local_port_range';
const SOCKETS = ['tcp', 'tcp6', 'udp', 'udp6'].map((name) => `/proc/net/${name}`);
/** `0A` in /proc/net/tcp; UDP sockets have no state but this one. */
const LISTENING = { tcp: '0A', udp: '07' };
const SAMPLE = 24;
const DIAL_MS = 3_000;
const READ_MS = 2_000;
const VersionAnswer = z.object({ executor_id: z.string() });

/** Binds ports for a moment only while `agentMayRun` is false: a launch might want one just then. */
export async function readPortFacts(options: {
  clock: Clock;
  agentHost: string;
  agentPort: number;
  /** Whether its listener is to serve TLS. */
  secure: boolean;
  range: PortRange;
  executorId: string | null;
  agentMayRun: boolean;
  /** How others reach this host; the address of the default route when null. */
  address: string | null;
  probePort: PortProbe;
}): Promise<PortFacts> {
  const { clock, agentHost, agentPort, range, executorId } = options;
  const sample = options.agentMayRun ? [] : sampleOf(range);
  const address = options.address ?? (await ownAddress());
  const [ephemeral, listening, free, local, outside] = await Promise.all([
    tell(clock, READ_MS, async () => rangeIn(await readFile(EPHEMERAL, 'utf8'))),
    tell(clock, READ_MS, readListening),
    Promise.all(sample.map(options.probePort)),
    agentAt(options, localHostOf(agentHost)),
    address === null ? null : agentAt(options, address),
  ]);
  const inRange = (port: number) => port >= range.first && port <= range.last;
  const isListening = 'value' in listening && listening.value.includes(agentPort);
  return {
    ...{ agentHost, agentPort, secure: options.secure, range, executorId, ephemeral },
    answers: { executorId: 'value' in local ? local.value : null, listening: isListening },
    listening: 'value' in listening ? { value: listening.value.filter(inRange) } : listening,
    refused: options.agentMayRun ? null : sample.filter((_, index) => free[index] === false),
    tried: sample.length,
    outside: outside === null || address === null ? null : { address, answered: outside },
  };
}

type Where = { clock: Clock; agentPort: number; secure: boolean };

/** The executor id of the agent there. Whether it shows the right key is for validators to say. */
function agentAt({ clock, agentPort, secure }: Where, host: string): Promise<Told<string>> {
  return tell(clock, DIAL_MS, async () => {
    const url = new URL(`${secure ? 'https' : 'http'}://${placeOf(host, agentPort)}/version`);
    const transport = secure ? createSecureTransport({ trust: 'anybody', clock }) : PLAIN_TRANSPORT;
    try {
      const init = { method: 'GET', headers: {}, signal: clock.deadline(DIAL_MS) };
      const response = await transport.fetch(url, init);
      return VersionAnswer.parse(await response.json()).executor_id;
    } finally {
      transport.close();
    }
  });
}

function sampleOf({ first, last }: PortRange): number[] {
  const count = Math.min(SAMPLE, last - first + 1);
  const step = (last - first) / Math.max(1, count - 1);
  return Array.from({ length: count }, (_, index) => first + Math.floor(index * step));
}

async function readListening(): Promise<number[]> {
  const texts = await Promise.all(
    SOCKETS.map(async (file) => ({
      state: file.includes('udp') ? LISTENING.udp : LISTENING.tcp,
      // A host without IPv6 has no such file.
      text: await readFile(file, 'utf8').catch(() => ''),
    })),
  );
  return [...new Set(texts.flatMap(({ text, state }) => listeningIn(text, state)))];
}

/** Local ports of the sockets in `state`, from the kernel's table. */
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

const ROUTES = '/proc/net/route';

/** IPv4 of the interface that the default route leaves by. */
async function ownAddress(): Promise<string | null> {
  const text = await readFile(ROUTES, 'utf8').catch(() => '');
  const name = /^(\S+)\t0{8}\t/m.exec(text)?.[1];
  const addresses = name === undefined ? [] : (networkInterfaces()[name] ?? []);
  return addresses.find(({ family }) => family === 'IPv4')?.address ?? null;
}
