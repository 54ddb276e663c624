/** Checks of rented hosts: the cards and pods that renters pay for exist, run, and are used by them alone. */
import type { GpuDevice } from '#shared/api/agent/inventory.ts';
import { ok, unknown } from '#shared/check/check.ts';
import { defineCheck, fail, warn } from './check.ts';
import type { Measured } from './measured.ts';

/** Consecutive failures at which a check fails: a driver may omit a card, or list a process that has just ended. */
const IN_A_ROW = 2;
/**
 * Consecutive failures at which a check fails. By then a rental that began or ended is recorded, and any probe of
 * another validator has ended.
 */
const DISAGREED_IN_A_ROW = 3;
const MAX_NAMED = 5;

type Pods = NonNullable<Measured['pods']>;
const presentOf = (pods: Pods): Pods => pods.filter(({ phase }) => phase !== 'removed');

export const gpuDrop = defineCheck({
  id: 'gpu_drop',
  detects: 'a card that a renter pays for but the host has lost',
  required: 'every card of a pod is present',
  category: 'runtime',
  whileRented: true,
  judge({ inventory: { gpu }, executor, measured: { pods } }) {
    if (!executor.rented || pods === null || gpu.error !== null) return unknown('not reported');
    const present = new Set(gpu.devices.map(({ uuid }) => uuid));
    const leased = presentOf(pods).flatMap(({ gpu_uuids: uuids }) => uuids);
    const lost = leased.filter((uuid) => !present.has(uuid));
    if (lost.length === 0) return ok(`${leased.length} cards`);
    const measured = lost.slice(0, MAX_NAMED).join(', ');
    return { ...fail('RENTED_GPU_LOST', measured, 'A rented card is missing'), inARow: IN_A_ROW };
  },
  remedies: { RENTED_GPU_LOST: 'Read the conditions of the pod; reset or reseat the card.' },
});

/** Maximum number of monitoring programs on a card that a provider may declare. */
const MAX_DECLARED = 2;

/** Number of processes on a leased card that belong neither to its pod nor to declared monitoring. */
function undeclaredOn({ outside_processes: outside, declared_processes: declared }: GpuDevice) {
  return (outside ?? 0) - Math.min(declared ?? 0, MAX_DECLARED);
}

export const gpuSideUse = defineCheck({
  id: 'gpu_side_use',
  detects: 'another process on the card of a renter',
  required:
    'only processes of the pod run on its cards, and at most two monitoring programs that the provider declared',
  category: 'policy',
  whileRented: true,
  judge({ inventory: { gpu } }) {
    const known = gpu.devices.filter(({ outside_processes: count }) => (count ?? null) !== null);
    if (known.length === 0) return unknown('not reported');
    const used = known.find((device) => undeclaredOn(device) > 0);
    if (used === undefined) return ok(`${known.length} cards`);
    const measured = `${used.uuid}: ${undeclaredOn(used)} processes`;
    const message = 'Processes outside the pod use its card';
    return { ...fail('GPU_PROCESS_OUTSIDE_POD', measured, message), inARow: IN_A_ROW };
  },
  remedies: {
    GPU_PROCESS_OUTSIDE_POD:
      'Stop the processes that nvidia-smi lists beside the pod, or declare a monitoring program in AGENT_GPU_MONITORS.',
  },
});

const DEAD: ReadonlySet<string> = new Set(['failed', 'quarantined']);
/** Reasons that the host causes. Others may be due to the renter's image or program, or a registry. */
const BY_HOST: ReadonlySet<string> = new Set([
  'HostReboot',
  'DockerUnavailable',
  'RuntimeMissing',
  'Internal',
  'GpuUnavailable',
  'GpuDirty',
  'GpuUnhealthy',
  'GpuLostInContainer',
  'PortConflict',
  'PortPoolExhausted',
  'NameTaken',
]);

/** Judges the pods on the host. The check `ledger` reports a missing pod, which may never have reached the host. */
export const podAlive = defineCheck({
  id: 'pod_alive',
  detects: 'a rented host that ended its pod',
  required: 'the pod of a rented host runs, or its end was not caused by the host',
  category: 'runtime',
  whileRented: true,
  judge({ executor, measured: { pods } }) {
    if (!executor.rented) return unknown('not rented');
    if (pods === null) return unknown('not reported');
    const present = presentOf(pods);
    if (present.length === 0) return unknown('no pod');
    const states = present.map(({ id, phase, reason }) => `${id} ${phase} ${reason ?? ''}`.trim());
    const measured = states.join(', ');
    if (present.some(({ phase }) => !DEAD.has(phase))) return ok(measured);
    const byHost = present.filter(({ reason }) => reason === null || BY_HOST.has(reason));
    if (byHost.length === 0) return warn(measured, 'The pod was not ended by the host');
    const causes = byHost.flatMap(({ reason }) => reason ?? []);
    const cause = causes.length === 0 ? '' : `: ${causes.join(', ')}`;
    const failure = fail('POD_NOT_RUNNING', measured, `No pod of a rented host runs${cause}`);
    return { ...failure, inARow: IN_A_ROW };
  },
  remedies: { POD_NOT_RUNNING: 'Read the pod’s events for why it ended.' },
});

export const ledger = defineCheck({
  id: 'ledger',
  detects: 'a host whose pods differ from its rentals',
  required: 'the host runs exactly the pods that the market has rented on it',
  category: 'runtime',
  mode: 'shadow',
  whileRented: true,
  judge({ executor: { pod_ids: rented }, measured: { pods, own_pods: probes } }) {
    if (rented === null || pods === null) return unknown('not reported');
    const present = presentOf(pods).map(({ id }) => id);
    const unrented = present.filter((id) => !rented.includes(id) && !probes.includes(id));
    const missing = rented.filter((id) => !present.includes(id));
    const named = (ids: readonly string[]) => ids.slice(0, MAX_NAMED).join(', ');
    const inARow = DISAGREED_IN_A_ROW;
    if (missing.length > 0) {
      const message = 'A rented pod is not on the host';
      return { ...fail('RENTED_POD_MISSING', named(missing), message), inARow };
    }
    if (unrented.length > 0) {
      const message = 'The host has a pod without a rental';
      return { ...fail('POD_NOT_RENTED', named(unrented), message), inARow };
    }
    return ok(`${present.length} pods`);
  },
  remedies: {
    POD_NOT_RENTED:
      'Compare the agent’s pods and `orphans` with the market; `npm run agent -- remove-all` removes every pod.',
    RENTED_POD_MISSING: 'Read the log of the agent for what happened to the pod.',
  },
});
