/** The spec that the agent gets, from the template and the renter's share of the node. Pure. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import { MAX_TEMPLATE_LABEL, OWN_SSHD, PodSpec, type PodSpecInput } from '#shared/api/agent/pod.ts';
import { VOLUME_MOUNT_PATH, volumesProblem } from '#shared/api/agent/volumes.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Template } from '../../platform/database/tables.ts';
import { checkTemplatePlaces } from '../templates/template.rules.ts';
import { commandWords } from '../templates/template.service.ts';

/** What is left to the host of the share that a pod's GPUs stand for. */
const MEMORY_SHARE = 0.9;
/** Of the free space: images that are yet to come need some too. */
const DISK_SHARE = 0.9;
/** Agents take no less. */
const MIN_DISK_BYTES = 16 * 1024 ** 2;
const SHM_SHARE = 0.5;
const MAX_SHM_BYTES = 64 * 1024 ** 3;
const MAX_PIDS = 4_096;
/** Of a template's name, at the node: half of MAX_TEMPLATE_LABEL, for a character may take two units. */
const LABEL_CHARS = MAX_TEMPLATE_LABEL / 2;
/** Cores are given in hundredths. */
const CORE_STEPS = 100;
const KIB = 1_024;
/** Extra ports wanted beyond the template's get these numbers inside the pod. */
const FIRST_EXTRA_PORT = 20_000;

export type SpecInput = {
  template: Template;
  inventory: Inventory;
  gpuUuids: readonly string[];
  /** GPUs of the whole node. */
  gpuTotal: number;
  /** External ports wanted; null or fewer than the template has leaves the template's. */
  portCount: number | null;
  /** A port that has to be among them. */
  notebookPort: number | null;
  sshPublicKeys: readonly string[];
  /** Of a volume that it gets at /mnt. */
  volumeCopyId?: string | null;
  /** Built instead of the template's image. */
  dockerfile?: string | undefined;
};

/** Throws 400 `template_invalid` for a template that no agent would take. */
export function podSpecFor(input: SpecInput): PodSpecInput {
  const { template, inventory, gpuUuids } = input;
  return checkedSpec({
    ...templatePart(template),
    ...(input.dockerfile === undefined ? {} : { image: { dockerfile: input.dockerfile } }),
    generation: 1,
    internal_ports: portsFor(input),
    gpu_uuids: [...gpuUuids],
    limits: limitsFor(inventory, gpuUuids.length / input.gpuTotal),
    ssh_public_keys: [...input.sshPublicKeys],
    ...(input.volumeCopyId ? { volume: { id: input.volumeCopyId } } : {}),
  });
}

/**
 * The spec that runs `template` where `present` runs: the same share of the node, the ports that were wanted
 * beyond the template's kept. Throws 400 `template_invalid` for a template that no agent would take.
 */
export function changedSpecFor(
  present: PodSpecInput,
  change: {
    template: Template;
    /** The template's image is the one that runs, which a Dockerfile may stand for. */
    keepsImage: boolean;
    /** Ports of the template that runs. */
    templatePorts: readonly number[];
    generation: number;
    sshPublicKeys: readonly string[];
  },
): PodSpecInput {
  const { template, templatePorts, generation } = change;
  const extra = (present.internal_ports ?? []).filter((port) => !templatePorts.includes(port));
  return checkedSpec({
    ...present,
    ...templatePart(template),
    ...(change.keepsImage ? { image: present.image } : {}),
    generation,
    internal_ports: [...new Set([...portsOf(template), ...extra])],
    ssh_public_keys: [...change.sshPublicKeys],
  });
}

/** What the template alone decides. */
function templatePart(template: Template) {
  const environment = JSON.parse(template.environment_json) as Record<string, string>;
  return {
    image: templateImage(template),
    entrypoint: commandWords('entrypoint', template.entrypoint),
    command: commandWords('startup_commands', template.startup_commands),
    environment,
    publish_own_sshd: environment[OWN_SSHD] === '1',
    volumes: volumesOf(template),
    template: labelOf(template),
  };
}

/** Without what no name of ours may hold, should one from before do so. */
function labelOf({ name }: Template): string {
  return [...name.replaceAll(/\p{C}/gu, '')].slice(0, LABEL_CHARS).join('');
}

/** Of a template that was stored when less was refused, too. */
function volumesOf(template: Template): string[] {
  const volumes = JSON.parse(template.volumes_json) as string[];
  checkTemplatePlaces({ volumes });
  return volumes;
}

function portsOf(template: Template): number[] {
  return JSON.parse(template.internal_ports_json) as number[];
}

function checkedSpec(spec: PodSpecInput): PodSpecInput {
  const clash = spec.volume && volumesProblem([VOLUME_MOUNT_PATH, ...(spec.volumes ?? [])]);
  if (clash) {
    throw new ApiError('template_invalid', `The template leaves no room for the volume: ${clash}`);
  }
  const checked = PodSpec.safeParse(spec);
  if (checked.success) return spec;
  const issue = checked.error.issues[0];
  throw new ApiError(
    'template_invalid',
    `The template cannot be run: ${issue?.path.join('.')}: ${issue?.message}`,
  );
}

/** The image that a template names. */
export function templateImage(template: Template): { reference: string; digest?: string } {
  const digest = template.docker_image_digest;
  return { reference: referenceOf(template), ...(digest === '' ? {} : { digest }) };
}

function referenceOf({ docker_image: image, docker_image_tag: tag }: Template): string {
  return tag === '' ? image : `${image}:${tag}`;
}

function limitsFor(inventory: Inventory, share: number): PodSpecInput['limits'] {
  const memoryBytes = Math.floor(inventory.memory.total_kib * KIB * MEMORY_SHARE * share);
  return {
    cpu_cores: Math.floor(inventory.cpu.cores * share * CORE_STEPS) / CORE_STEPS,
    memory_bytes: memoryBytes,
    shm_bytes: Math.min(Math.floor(memoryBytes * SHM_SHARE), MAX_SHM_BYTES),
    pids: MAX_PIDS,
    disk_bytes: Math.max(
      Math.floor(inventory.disk.free_kib * KIB * DISK_SHARE * share),
      MIN_DISK_BYTES,
    ),
  };
}

function portsFor({ template, portCount, notebookPort }: SpecInput): number[] {
  const ports = new Set(portsOf(template));
  if (notebookPort !== null) ports.add(notebookPort);
  for (let extra = FIRST_EXTRA_PORT; ports.size < (portCount ?? 0); extra += 1) ports.add(extra);
  return [...ports];
}
