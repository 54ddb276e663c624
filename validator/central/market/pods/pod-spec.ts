/** Builds the agent's spec from the template and the renter's share of the node. Pure. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import { MAX_TEMPLATE_LABEL, OWN_SSHD, PodSpec, type PodSpecInput } from '#shared/api/agent/pod.ts';
import { VOLUME_MOUNT_PATH, volumesProblem } from '#shared/api/agent/volumes.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Template } from '../../platform/database/tables.ts';
import { commandWords } from '../templates/template.service.ts';
import { checkTemplatePaths } from '../templates/template-content.ts';

/**
 * Part of the host's memory that is divided among pods in proportion to their GPUs. The host keeps the remaining
 * memory.
 */
const MEMORY_SHARE = 0.9;
/**
 * Part of the free disk space that is divided among pods in proportion to their GPUs. The remaining space is for
 * images.
 */
const DISK_SHARE = 0.9;
/** Limit of the agent. */
const MIN_DISK_BYTES = 16 * 1024 ** 2;
const SHM_SHARE = 0.5;
const MAX_SHM_BYTES = 64 * 1024 ** 3;
const MAX_PIDS = 4_096;
/**
 * Length of the template's name in the spec: half of MAX_TEMPLATE_LABEL, because a character may take two UTF-16
 * units.
 */
const LABEL_CHARS = MAX_TEMPLATE_LABEL / 2;
const CORE_STEPS = 100;
const KIB = 1_024;
/** First internal port of the ports that are added to the template's ports. */
const FIRST_EXTRA_PORT = 20_000;

export type SpecInput = {
  template: Template;
  inventory: Inventory;
  gpuUuids: readonly string[];
  gpuTotal: number;
  /** Requested number of external ports. The template's ports are always included. */
  portCount: number | null;
  /** Port of the notebook server, which is included in the ports. */
  notebookPort: number | null;
  sshPublicKeys: readonly string[];
  /** Copy of the volume that is mounted at /mnt. */
  volumeCopyId?: string | null;
  dockerfile?: string | undefined;
  secretNames: readonly string[];
};

/** Builds the spec. Throws 400 `template_invalid` for a template that every agent would refuse. */
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
    ...(input.secretNames.length > 0 ? { secret_names: [...input.secretNames] } : {}),
  });
}

/**
 * Builds the spec that runs `template` instead of `present`, with the same share of the node and the same extra ports.
 * Throws 400 `template_invalid` for a template that every agent would refuse.
 */
export function changedSpecFor(
  present: PodSpecInput,
  change: {
    template: Template;
    /** True to keep the present image, which may be built from a Dockerfile. */
    keepsImage: boolean;
    /** Ports of the present template. */
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

/**
 * Returns the spec with a copy of a volume. Throws 400 `template_invalid` if a path of the template conflicts with the
 * volume.
 */
export function specWithVolume(spec: PodSpecInput, copyId: string): PodSpecInput {
  return checkedSpec({ ...spec, volume: { id: copyId } });
}

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

/** Removes control characters, which older templates may contain. */
function labelOf({ name }: Template): string {
  return [...name.replaceAll(/\p{C}/gu, '')].slice(0, LABEL_CHARS).join('');
}

/**
 * Returns the template's volumes. They are checked again, because an older template may have been stored before a check
 * existed.
 */
function volumesOf(template: Template): string[] {
  const volumes = JSON.parse(template.volumes_json) as string[];
  checkTemplatePaths({ volumes });
  return volumes;
}

function portsOf(template: Template): number[] {
  return JSON.parse(template.internal_ports_json) as number[];
}

function checkedSpec(spec: PodSpecInput): PodSpecInput {
  const clash = spec.volume && volumesProblem([VOLUME_MOUNT_PATH, ...(spec.volumes ?? [])]);
  if (clash) {
    throw new ApiError('template_invalid', `The template conflicts with the volume: ${clash}`);
  }
  const checked = PodSpec.safeParse(spec);
  if (checked.success) return spec;
  const issue = checked.error.issues[0];
  throw new ApiError(
    'template_invalid',
    `The template cannot be run: ${issue?.path.join('.')}: ${issue?.message}`,
  );
}

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
