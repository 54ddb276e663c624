/** A pod as the agent works with it: its row with the spec and the structured columns read. Pure. */
import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { PodSpec, PodView } from '#shared/api/agent/pod.ts';
import type { PodRow } from './pod.store.ts';

export type LastExit = NonNullable<PodView['last_exit']>;
export type PortMapping = { internal: number; host: number };

/** Inside every pod the port of SSH. */
export const SSH_PORT = 22;

const Conditions = PodView.shape.conditions;
const LastExit = PodView.shape.last_exit;

/** The spec of a row. Throws ZodError when it is corrupt. */
export function specOf(row: Pick<PodRow, 'spec_json'>): PodSpec {
  return PodSpec.parse(JSON.parse(row.spec_json));
}

/** How the last container of the pod ended, if one has. */
export function lastExitOf(row: PodRow): LastExit | null {
  return row.last_exit_json === null ? null : LastExit.parse(JSON.parse(row.last_exit_json));
}

/** The conditions as they were last saved. */
export function conditionsOf(row: PodRow): z.output<typeof Conditions> {
  return Conditions.parse(JSON.parse(row.conditions_json));
}

/** Those of the leased ports that the present generation asks for: others wait for a change to end. */
export function servedPorts(
  row: Pick<PodRow, 'spec_json'>,
  leased: readonly PortMapping[],
): PortMapping[] {
  const wanted = specOf(row).internal_ports;
  return leased.filter(({ internal }) => wanted.includes(internal));
}

/** Those that the engine publishes: the SSH gateway listens on SSH's itself, unless the pod opts out. */
export function publishedPorts(
  row: Pick<PodRow, 'spec_json'>,
  leased: readonly PortMapping[],
): PortMapping[] {
  const spec = specOf(row);
  return servedPorts(row, leased).filter(({ internal }) => !isGatewayPort(spec, internal));
}

/** Whether the SSH gateway serves this port of a pod. */
export function isGatewayPort(spec: PodSpec, internal: number): boolean {
  return internal === SSH_PORT && !spec.publish_own_sshd;
}

/**
 * Equal for equal content, however its members were ordered. No volumes hash as before there were any, and a name that
 * nothing depends on makes no other pod.
 */
export function specHash(spec: PodSpec): string {
  const { volumes, template: _, ...rest } = spec;
  return sha256(canonicalJson(volumes.length === 0 ? rest : { ...rest, volumes }));
}

/**
 * What a container was made from: the spec and the host ports. Carried by its label, so that an agent
 * that was killed between two steps knows whether the container it finds is the one it wants.
 */
export function launchHash(hashOfSpec: string, ports: readonly PortMapping[]): string {
  return sha256(canonicalJson({ spec: hashOfSpec, ports }));
}

/** The name of the container of one generation. */
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

/** What a generation asks for. */
export type PodContent = Pick<PodRow, 'spec_json' | 'spec_hash'>;

/** A pod that nothing was done for yet. */
export function newPodRow(
  id: string,
  generation: number,
  content: PodContent,
  nowMs: number,
): PodRow {
  return {
    ...content,
    id,
    desired: 'running',
    stopped: 0,
    phase: 'pending',
    phase_since_ms: nowMs,
    generation,
    observed_generation: 0,
    image_id: null,
    image_digest: null,
    container_id: null,
    reason: null,
    message: '',
    attempts: 0,
    restart_count: 0,
    port_conflicts: 0,
    next_retry_ms: null,
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
