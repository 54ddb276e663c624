/** How the agent and what it lends out stand (agent reference 15, set E): what is set anew by each collection. */
import { POD_PHASES, type PodPhase } from '#shared/api/agent/pod.ts';
import type { UpdateState } from '#shared/api/agent/update-status.ts';
import { type Family, unlabelled } from '#shared/telemetry/family.ts';
import type { GatewayTraffic } from '../access/ssh/gateway-files.ts';
import type { HostSample } from '../host/host-probe.ts';
import { AGENT_PREFIX } from './instruments.ts';

/** `held` by a pod, `free`, or `dirty` (a process outlived its pod). */
export type GpuLeaseState = {
  uuid: string;
  state: 'held' | 'free' | 'dirty';
  podId: string | null;
};

/** Of everything at one moment. */
export type AgentState = {
  /** Of every pod. */
  phases: readonly PodPhase[];
  gpuLeases: readonly GpuLeaseState[];
  /** Kept from new pods. */
  cordonedUuids: readonly string[];
  ports: { size: number; free: number };
  logSubscribers: number;
  /** Null where no gateway tells. */
  ssh: GatewayTraffic | null;
  diskQuota: string;
  firewallEnforced: boolean;
  unfinishedOperations: number;
  /** Whether the GPUs are simulated. */
  simulated: boolean;
  /** Of the agent's own update. */
  updateState: UpdateState;
};

/** `state` is null before the first collection. */
export function stateFamilies(state: () => AgentState | null): Family[] {
  const gauge = (
    name: string,
    help: string,
    [labels, samples]: [Family['labels'], (now: AgentState) => ReturnType<Family['samples']>],
  ): Family => ({
    ...{ name: AGENT_PREFIX + name, help, type: 'gauge', labels },
    samples() {
      const now = state();
      return now === null ? [] : samples(now);
    },
  });
  return [
    gauge('pods', 'Pods by phase.', [
      ['phase'],
      ({ phases }) =>
        POD_PHASES.map((phase) => ({
          labels: { phase },
          value: phases.filter((other) => other === phase).length,
        })),
    ]),
    gauge('gpu_lease_state', '1 for the present state of each GPU.', [
      ['uuid', 'state'],
      (now) =>
        now.gpuLeases.map(({ uuid, state: is }) => ({ labels: { uuid, state: is }, value: 1 })),
    ]),
    gauge('gpu_cordoned', 'Always 1 for each GPU that is kept from new pods.', [
      ['uuid'],
      ({ cordonedUuids }) => cordonedUuids.map((uuid) => ({ labels: { uuid }, value: 1 })),
    ]),
    gauge('gpus_simulated', '1 where the GPUs are simulated: nothing computes on them.', [
      [],
      ({ simulated }) => unlabelled(simulated ? 1 : 0),
    ]),
    gauge('port_pool_size', 'Host ports for pods.', [[], ({ ports }) => unlabelled(ports.size)]),
    gauge('port_pool_free', 'Those that could be leased now.', [
      [],
      ({ ports }) => unlabelled(ports.free),
    ]),
    gauge('log_subscribers', 'Log streams that follow a pod.', [
      [],
      (now) => unlabelled(now.logSubscribers),
    ]),
    gauge('ssh_sessions', 'Sessions of the SSH gateway.', [
      [],
      ({ ssh }) => (ssh === null ? [] : unlabelled(ssh.sessions)),
    ]),
    {
      ...gauge('ssh_sessions_total', 'Sessions since the start of the SSH gateway.', [
        [],
        ({ ssh }) => (ssh === null ? [] : unlabelled(ssh.sessions_total)),
      ]),
      type: 'counter',
    },
    {
      ...gauge('ssh_auth_failures_total', 'Tries to log in by SSH that proved no key of the pod.', [
        [],
        ({ ssh }) => (ssh === null ? [] : unlabelled(ssh.login_failures_total)),
      ]),
      type: 'counter',
    },
    gauge('disk_quota_enforced', '1 for what holds pods to their share of the disk.', [
      ['mode'],
      ({ diskQuota: mode }) => [{ labels: { mode }, value: 1 }],
    ]),
    gauge(
      'firewall_enforced',
      "1 where the pods' firewall rules were last found or put in place.",
      [[], (now) => unlabelled(now.firewallEnforced ? 1 : 0)],
    ),
    gauge('update_state', "1 for the state of the agent's own update.", [
      ['state'],
      ({ updateState: state }) => [{ labels: { state }, value: 1 }],
    ]),
    gauge('operations_unfinished', 'Backups, restores and drills that wait or run.', [
      [],
      (now) => unlabelled(now.unfinishedOperations),
    ]),
  ];
}

// MERGED agent/metrics/agent-families.ts: The host's own figures, under names that no node_exporter beside has (agent reference 15, set C).
const PREFIX = `${AGENT_PREFIX}host_`;
const BYTES_PER_KIB = 1_024;
const PERCENT = 100;

const FIGURES: readonly (readonly [string, string, (host: HostSample) => number | null])[] = [
  ['cpu_cores', 'Processors of the host.', ({ cpu }) => cpu.cores],
  [
    'cpu_utilization_ratio',
    'Busy share of all processors between the last two samples.',
    ({ cpu }) => (cpu.utilization_percent === null ? null : cpu.utilization_percent / PERCENT),
  ],
  ['load1', 'Mean load of the last minute.', ({ cpu }) => cpu.load_1m],
  ['memory_total_bytes', 'Memory of the host.', ({ memory }) => memory.total_kib * BYTES_PER_KIB],
  [
    'memory_available_bytes',
    'Memory that could be had without swapping.',
    ({ memory }) => memory.available_kib * BYTES_PER_KIB,
  ],
  [
    'disk_total_bytes',
    'Size of the file system that pods fill.',
    ({ disk }) => disk.total_kib * BYTES_PER_KIB,
  ],
  ['disk_free_bytes', 'What is free there.', ({ disk }) => disk.free_kib * BYTES_PER_KIB],
  [
    'network_receive_bytes_per_second',
    'Received through the interfaces of the default routes between the last two samples.',
    ({ network }) => network.rx_bytes_per_second,
  ],
  [
    'network_transmit_bytes_per_second',
    'Sent through them.',
    ({ network }) => network.tx_bytes_per_second,
  ],
];

/** `host` is null where the last sample is too old to be shown. */
export function hostFamilies(host: () => HostSample | null): Family[] {
  return FIGURES.map(([name, help, figureOf]) => ({
    name: PREFIX + name,
    help,
    type: 'gauge',
    labels: [],
    samples() {
      const now = host();
      return now === null ? [] : unlabelled(figureOf(now));
    },
  }));
}
