/** Metrics of the agent's state and of the host. Host metrics have names that do not clash with node_exporter. */
import { POD_PHASES, type PodPhase } from '#shared/api/agent/pod.ts';
import type { UpdateState } from '#shared/api/agent/update-status.ts';
import { type Family, unlabelled } from '#shared/telemetry/family.ts';
import type { GatewayTraffic } from '../access/ssh/gateway-files.ts';
import type { HostSample } from '../host/host-probe.ts';
import { AGENT_PREFIX } from './instruments.ts';

/** `held` by a pod, `free`, or `dirty` (a process outlived its pod). */
const LEASE_STATES = ['held', 'free', 'dirty'] as const;

export type GpuLeaseState = {
  uuid: string;
  state: (typeof LEASE_STATES)[number];
  podId: string | null;
};

/** State of the agent at one collection. */
export type AgentState = {
  /** Phase of every pod. */
  phases: readonly PodPhase[];
  gpuLeases: readonly GpuLeaseState[];
  /** GPUs in `gpuLeases` that accept no new pods. */
  cordonedUuids: readonly string[];
  ports: { size: number; free: number };
  logSubscribers: number;
  /** Null if no SSH gateway reports. */
  ssh: GatewayTraffic | null;
  diskQuota: string;
  firewallEnforced: boolean;
  unfinishedOperations: number;
  simulated: boolean;
  /** State of the agent's self-update. */
  updateState: UpdateState;
};

/** `state` is null before the first collection. */
export function stateFamilies(state: () => AgentState | null): Family[] {
  const gauge = (
    name: string,
    help: string,
    [labels, samples]: [Family['labels'], (now: AgentState) => ReturnType<Family['samples']>],
  ): Family => ({
    name: AGENT_PREFIX + name,
    help,
    type: 'gauge',
    labels,
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
    gauge('gpu_lease_state', '1 for the current lease state of each GPU, 0 for the others.', [
      ['uuid', 'state'],
      (now) =>
        now.gpuLeases.flatMap(({ uuid, state: is }) =>
          LEASE_STATES.map((state) => ({ labels: { uuid, state }, value: state === is ? 1 : 0 })),
        ),
    ]),
    gauge('gpu_cordoned', '1 for each cordoned GPU, 0 for the others.', [
      ['uuid'],
      ({ gpuLeases, cordonedUuids }) =>
        gpuLeases.map(({ uuid }) => ({
          labels: { uuid },
          value: cordonedUuids.includes(uuid) ? 1 : 0,
        })),
    ]),
    gauge('gpus_simulated', '1 if the GPUs are simulated.', [
      [],
      ({ simulated }) => unlabelled(simulated ? 1 : 0),
    ]),
    gauge('port_pool_size', 'Host ports for pods.', [[], ({ ports }) => unlabelled(ports.size)]),
    gauge('port_pool_free', 'Host ports for pods that are free.', [
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
      ...gauge('ssh_auth_failures_total', 'Failed SSH logins.', [
        [],
        ({ ssh }) => (ssh === null ? [] : unlabelled(ssh.login_failures_total)),
      ]),
      type: 'counter',
    },
    gauge('disk_quota_enforced', '1 for the mechanism that enforces disk quotas.', [
      ['mode'],
      ({ diskQuota: mode }) => [{ labels: { mode }, value: 1 }],
    ]),
    gauge('firewall_enforced', "1 if the pods' firewall rules were in place at the last check.", [
      [],
      (now) => unlabelled(now.firewallEnforced ? 1 : 0),
    ]),
    gauge('update_state', "1 for the state of the agent's self-update.", [
      ['state'],
      ({ updateState: state }) => [{ labels: { state }, value: 1 }],
    ]),
    gauge('operations_unfinished', 'Waiting and running backups, restores and drills.', [
      [],
      (now) => unlabelled(now.unfinishedOperations),
    ]),
  ];
}

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
  ['load1', 'Load average over one minute.', ({ cpu }) => cpu.load_1m],
  ['memory_total_bytes', 'Memory of the host.', ({ memory }) => memory.total_kib * BYTES_PER_KIB],
  [
    'memory_available_bytes',
    'Memory available without swapping.',
    ({ memory }) => memory.available_kib * BYTES_PER_KIB,
  ],
  [
    'disk_total_bytes',
    'Size of the file system that pods use.',
    ({ disk }) => disk.total_kib * BYTES_PER_KIB,
  ],
  [
    'disk_free_bytes',
    'Free space of the file system that pods use.',
    ({ disk }) => disk.free_kib * BYTES_PER_KIB,
  ],
  [
    'network_receive_bytes_per_second',
    'Receive rate of the interfaces of the default routes between the last two samples.',
    ({ network }) => network.rx_bytes_per_second,
  ],
  [
    'network_transmit_bytes_per_second',
    'Transmit rate of these interfaces.',
    ({ network }) => network.tx_bytes_per_second,
  ],
];

/** `host` returns null if the last sample is too old. */
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
