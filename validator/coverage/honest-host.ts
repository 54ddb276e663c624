/** Facts of an inspection of an honest host with two cards: what every check wants to find. Pure. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import type { Facts } from '../checks/check.ts';
import type { CheckPolicy } from '../checks/check-policy.ts';
import { type Measured, nothingMeasured } from '../checks/measured.ts';

const KIB_PER_GIB = 1_048_576;
const CORES = 32;
const MEMORY_KIB = 256 * KIB_PER_GIB;
const DISK_KIB = 1_000 * KIB_PER_GIB;
const MODEL = 'NVIDIA H100 80GB HBM3';
const MEMORY_MIB = 81_559;
export const EXECUTOR_ID = '00000000-0000-4000-8000-000000000001';
export const CARDS: readonly string[] = ['GPU-00000001-aa', 'GPU-00000001-ab'];
export const AGENT_DIGEST = `sha256:${'a'.repeat(64)}`;
const DAY_MS = 24 * 3_600_000;
/** Duration of a proof, on this host and on others with the same hardware. */
export const USUAL_MS = 1_000;

/** `hotkey`: the provider. */
export type HonestOptions = { atMs: number; hotkey: string; checks: CheckPolicy };

export function honestFacts({ atMs, hotkey, checks }: HonestOptions): Facts {
  const inventory = honestInventory(atMs);
  return {
    executor: listingOf(hotkey),
    inventory,
    transportError: null,
    refusal: null,
    identity: { publicKey: 'ab'.repeat(32), enrolledUntilMs: atMs + DAY_MS },
    receivedMs: atMs,
    probe: { ok: true, reason_code: null, steps: [], simulated: false },
    measured: honestMeasurements(atMs, checks),
    policy: { acceptSimulated: false, checks },
  };
}

const listingOf = (miner_hotkey: string): ExecutorToCheck => ({
  id: EXECUTOR_ID,
  executor_ip_address: '192.0.2.1',
  executor_ip_port: '8080',
  uptime_in_minutes: null,
  miner_hotkey,
  gpu_type: MODEL,
  gpu_count: CARDS.length,
  gpu_uuids: [],
  rented: false,
  pod_ids: [],
  price_uusd: null,
  collateral_deposited: true,
});

function honestInventory(atMs: number): Inventory {
  return {
    executor_id: EXECUTOR_ID,
    agent_version: '999.0.0',
    collected_ms: atMs,
    simulated: false,
    gpu: {
      driver: 'nvidia',
      driver_version: '570.86.15',
      cuda_version: '12.8',
      devices: CARDS.map(deviceOf),
      topology: null,
      error: null,
    },
    cpu: { model: 'Processor', cores: CORES, utilization_percent: 1 },
    memory: { total_kib: MEMORY_KIB, available_kib: MEMORY_KIB },
    disk: { path: '/var/lib/docker', total_kib: DISK_KIB, free_kib: DISK_KIB },
    os: { name: 'Debian GNU/Linux 12', kernel: '6.1', hostname: 'host', boot_id: 'boot' },
    hardware: null,
    docker: {
      version: '27.0',
      storage_driver: 'overlay2',
      cgroup_version: '2',
      gpu_runtime: true,
      sysbox_runtime: false,
    },
    isolation: { firewall: 'enforced', disk_quota: 'kernel', seccomp: true },
    ports: { first: 31_000, last: 31_099, free: 100 },
    orphans: [],
    sources: {
      pci_gpus: CARDS.length,
      driver_gpus: CARDS.map((uuid) => ({ uuid, model: MODEL })),
      driver_library_sha256: 'a'.repeat(64),
      cpus_present: CORES,
      memory_kib: MEMORY_KIB,
      disk_kib: DISK_KIB,
      disk_writable: true,
      restic: '0.16.0',
    },
    update: {
      kind: 'image-digest',
      state: 'IDLE',
      running_version: '999.0.0',
      current_digest: AGENT_DIGEST,
      sequence: 1,
      target_digest: null,
      target_sequence: null,
      update_pending: false,
      reason: null,
      message: '',
      attempts: 0,
      since_ms: null,
      last_check_ms: atMs,
      next_check_ms: atMs,
    },
  };
}

const deviceOf = (uuid: string, index: number): Inventory['gpu']['devices'][number] => ({
  index,
  uuid,
  name: MODEL,
  memory_total_mib: MEMORY_MIB,
  memory_used_mib: 0,
  utilization_percent: 0,
  temperature_c: 30,
  power_draw_w: 70,
  power_limit_w: 700,
  power_enforced_limit_w: 700,
  power_default_limit_w: 700,
  power_max_limit_w: 700,
  pci_bus_id: null,
  graphics_clock_mhz: 210,
  memory_clock_mhz: 405,
  pcie_link: null,
  ecc_errors: 0,
  recovery_action: 'None',
  processes: 0,
  compute_processes: 0,
  graphics_processes: 0,
  mig: null,
  leased_by: null,
  lease_state: 'free',
  cordoned: null,
});

/** Number of other executors with the same hardware. */
const OTHERS = 5;
const REACHED = { tried: OTHERS, reached: OTHERS };
const TIMES = { ms: USUAL_MS, wall_ms: USUAL_MS, expected_ms: USUAL_MS, others: OTHERS };
const FAST_KBIT = 1_000_000;
const SAMPLED_PORTS = 50;

function honestMeasurements(atMs: number, checks: CheckPolicy): Measured {
  const done = { reason: null, detail: '', openings_hash: null, repeated: false };
  return {
    ...nothingMeasured(atMs),
    pods: [],
    proof: {
      ...done,
      ...TIMES,
      device: 'cpu',
      status: 'proven',
      part: null,
      parts: ['product', 'memory', 'disk'],
      roots: [],
    },
    gpu_proof: {
      ...TIMES,
      device: 'gpu',
      status: 'proven',
      reason: null,
      detail: '',
      cards: CARDS.map((uuid) => ({
        uuid,
        reason: null,
        detail: '',
        roots: [],
        openings_hash: null,
      })),
      repeated: false,
    },
    ports: {
      asked: SAMPLED_PORTS,
      opened: SAMPLED_PORTS,
      reached: SAMPLED_PORTS,
      problem: null,
      refused: false,
      others: REACHED,
      repeated: false,
    },
    egress:
      checks.egress_image === null
        ? null
        : { registry: 'answers', problem: '', others: REACHED, repeated: false },
    templates:
      checks.template_images.length === 0
        ? null
        : {
            images: checks.template_images.map((image) => ({
              image,
              state: 'pullable',
              problem: '',
            })),
            unavailable: [],
            repeated: false,
          },
    line: {
      samples: 5,
      down_kbit: FAST_KBIT,
      up_kbit: FAST_KBIT,
      last_down_kbit: FAST_KBIT,
      last_up_kbit: FAST_KBIT,
      false_stream: null,
      refusals: 0,
      others_down_kbit: FAST_KBIT,
      others_up_kbit: FAST_KBIT,
      measured_ms: atMs,
      repeated: false,
    },
    rental: {
      status: 'passed',
      step: null,
      detail: '',
      ms: USUAL_MS,
      at_ms: atMs,
      memory: { given_kib: MEMORY_KIB, seen_kib: MEMORY_KIB },
      pods: [],
      refused: false,
      repeated: false,
    },
    releases: {
      target: AGENT_DIGEST,
      sequence: 1,
      is_known: true,
      rollout_permille: 1_000,
      grace_until_ms: 0,
    },
  };
}
