/** Parses the JSON columns of a pod's row and derives ports, hashes and names from its spec. Pure. */
import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { PodSpec, PodView } from '#shared/api/agent/pod.ts';
import type { PodRow } from './pod.store.ts';

export type LastExit = NonNullable<PodView['last_exit']>;
export type PortMapping = { internal: number; host: number };

/** SSH port inside every pod. */
export const SSH_PORT = 22;

const Conditions = PodView.shape.conditions;
const LastExit = PodView.shape.last_exit;

/** Throws ZodError if the row is corrupt. */
export function specOf(row: Pick<PodRow, 'spec_json'>): PodSpec {
  return PodSpec.parse(JSON.parse(row.spec_json));
}

export function lastExitOf(row: PodRow): LastExit | null {
  return row.last_exit_json === null ? null : LastExit.parse(JSON.parse(row.last_exit_json));
}

export function conditionsOf(row: PodRow): z.output<typeof Conditions> {
  return Conditions.parse(JSON.parse(row.conditions_json));
}

/** Internal port of the pod's own SSH server; null for a pod that the SSH gateway serves. */
export function ownSshdPortOf(spec: PodSpec): number | null {
  return spec.publish_own_sshd ? SSH_PORT : null;
}

/** Leased ports that the present generation uses. During a change, more ports are leased. */
export function servedPorts(
  row: Pick<PodRow, 'spec_json'>,
  leased: readonly PortMapping[],
): PortMapping[] {
  const wanted = specOf(row).internal_ports;
  return leased.filter(({ internal }) => wanted.includes(internal));
}

/** Ports that the engine publishes. The SSH gateway serves the SSH port unless the pod runs its own server. */
export function publishedPorts(
  row: Pick<PodRow, 'spec_json'>,
  leased: readonly PortMapping[],
): PortMapping[] {
  const spec = specOf(row);
  return servedPorts(row, leased).filter(({ internal }) => !isGatewayPort(spec, internal));
}

export function isGatewayPort(spec: PodSpec, internal: number): boolean {
  return internal === SSH_PORT && !spec.publish_own_sshd;
}

/**
 * Hash of the spec's content; the order of members has no effect. Empty lists of volumes and secrets and the template's
 * name are left out, so that specs of earlier versions keep their hashes.
 */
export function specHash(spec: PodSpec): string {
  const { volumes, secret_names, template: _, ...rest } = spec;
  const lists = Object.entries({ volumes, secret_names }).filter(([, list]) => list.length > 0);
  return sha256(canonicalJson({ ...rest, ...Object.fromEntries(lists) }));
}

/**
 * Hash of the spec and the host ports from which a container was created. It is the container's label, so that an agent
 * that was killed between two steps recognizes its container.
 */
export function launchHash(hashOfSpec: string, ports: readonly PortMapping[]): string {
  return sha256(canonicalJson({ spec: hashOfSpec, ports }));
}

export function containerName(podId: string, generation: number): string {
  return `pod-${podId}-g${generation}`;
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    isPlainObject(member) ? Object.fromEntries(Object.entries(member).sort(byName)) : member,
  );
}

function byName([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

export type PodContent = Pick<PodRow, 'spec_json' | 'spec_hash'>;

/** Columns of a launch that has not begun. */
const NOT_LAUNCHED = {
  phase: 'pending',
  container_id: null,
  reason: null,
  message: '',
  attempts: 0,
  port_conflicts: 0,
  next_retry_ms: null,
} as const;

/** Patch with which the pod launches a generation. The new container also completes a pending reboot. */
export function launchPatch(
  row: PodRow,
  {
    generation,
    spec_json,
    spec_hash,
    image_id,
    image_digest,
  }: PodContent & Pick<PodRow, 'generation' | 'image_id' | 'image_digest'>,
) {
  const content = { spec_json, spec_hash, image_id, image_digest };
  return { ...NOT_LAUNCHED, ...content, generation, reboots_done: row.reboots_requested };
}

/** Row of a new pod in phase `pending`. */
export function newPodRow(
  id: string,
  generation: number,
  content: PodContent,
  nowMs: number,
): PodRow {
  return {
    ...NOT_LAUNCHED,
    ...content,
    id,
    desired: 'running',
    stopped: 0,
    phase_since_ms: nowMs,
    generation,
    observed_generation: 0,
    image_id: null,
    image_digest: null,
    restart_count: 0,
    launched: 0,
    reboots_requested: 0,
    reboots_done: 0,
    reboot_target: 0,
    reboot_from_ms: 0,
    boot_id: '',
    last_exit_json: null,
    conditions_json: '[]',
    staged_json: null,
    fallback_json: null,
    refused_json: null,
    created_ms: nowMs,
    updated_ms: nowMs,
  };
}
