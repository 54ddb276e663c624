/**
 * Changes the content of a pod: edit, template switch and reboot. The row receives a new generation, which the sync
 * sends to the node, and stores the former content. If the new generation fails, the node returns to the former one by
 * itself, and the row follows. The pod counts as rebooting during the change.
 */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { PodSpecInput, PodView } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Db, Pod, Template } from '../../platform/database/tables.ts';
import type { Actor } from '../../platform/identity.ts';
import { TemplateResponse } from '../templates/template.schemas.ts';
import { templateResponse } from '../templates/template.service.ts';
import {
  ownTemplateChangedSince,
  retireTemplate,
  revertTemplateEdit,
  unmarkTemplateRented,
} from '../templates/template-use.service.ts';
import type { PodTemplate } from './pod.schemas.ts';
import { wirePhase } from './pod.state.ts';
import { movePod } from './pod.store.ts';
import { recordPodEvent } from './pod-events.ts';
import { podKeysOf } from './pod-key.ts';
import { statusOf } from './pod-response.ts';
import { changedSpecFor, specWithVolume } from './pod-spec.ts';
import { AWAITS_DECISION } from './unknown-pods.plan.ts';
import { isUnknown } from './unknown-pods.ts';

/** Content of the pod before the pending change. */
const Previous = z.object({
  generation: z.int(),
  state: z.enum(['running', 'reboot_failed']),
  spec_json: z.string(),
  template_id: z.string(),
  template_json: z.string(),
  docker_credential_id: z.string().nullable(),
  /** True if the account's own template was edited for this change. The template is restored if the change fails. */
  edits_template: z.boolean(),
});
export type Previous = z.output<typeof Previous>;

/** Columns that identify a template's image. A pod with a Dockerfile keeps its build while they are unchanged. */
const IMAGE_COLUMNS = ['docker_image', 'docker_image_tag', 'docker_image_digest'] as const;

export type ChangeKind = 'reboot' | 'edit' | 'switch-template';

/** Returns the content before the pending change; null if no change is pending. */
export function previousOf(pod: Pick<Pod, 'previous_json'>): Previous | null {
  return pod.previous_json === null ? null : Previous.parse(JSON.parse(pod.previous_json));
}

/** Returns the template that the pod runs. */
export function templateOf(pod: Pick<Pod, 'template_json'>): PodTemplate {
  return JSON.parse(pod.template_json) as PodTemplate;
}

/** Returns the pod's spec with this template. Throws `template_invalid`. */
function specWith(
  pod: Pod,
  template: Template,
  { generation, sshPublicKeys }: { generation: number; sshPublicKeys: readonly string[] },
): PodSpecInput {
  const ran = templateOf(pod);
  return changedSpecFor(JSON.parse(pod.spec_json) as PodSpecInput, {
    template,
    keepsImage: IMAGE_COLUMNS.every((column) => ran[column] === template[column]),
    // The port of a notebook server is requested separately, even if the template also has it.
    templatePorts: templatePortsOf(pod).filter((port) => port !== pod.jupyter_port),
    generation,
    sshPublicKeys,
  });
}

function templatePortsOf(pod: Pod): number[] {
  return (templateOf(pod)['internal_ports'] ?? []) as number[];
}

/**
 * Returns the account's own template if it changed since the pod last tried it and if it leads to another spec;
 * otherwise null.
 */
export async function changedTemplateOf(tx: Db, pod: Pod): Promise<Template | null> {
  const sinceMs = pod.template_tried_at ?? pod.created_at;
  const template = await ownTemplateChangedSince(tx, pod.account_id, pod.template_id, sinceMs);
  if (template === null) return null;
  const present = JSON.parse(pod.spec_json) as PodSpecInput;
  const { generation, ssh_public_keys: sshPublicKeys = [] } = present;
  const next = specWith(pod, template, { generation, sshPublicKeys });
  return isDeepStrictEqual(next, present) ? null : template;
}

/**
 * Returns the changed row. Throws `pod_state_conflict` unless the pod is running or failed to reboot, and while an
 * operator must decide about its generation.
 */
export async function beginRestart(
  tx: Db,
  deps: { clock: Clock; random: Random },
  pod: Pod,
  request: {
    actor: Actor;
    kind: ChangeKind;
    /** Null if the template stays unchanged. */
    template: Template | null;
    /** Copy of the volume that is added to the pod. */
    volumeCopyId?: string | null;
  },
): Promise<Pod> {
  const { actor, kind, template, volumeCopyId = null } = request;
  // The node would ignore a change to a generation that it already has.
  if (await isUnknown(tx, pod)) throw new ApiError('pod_state_conflict', AWAITS_DECISION);
  const change = {
    phase: wirePhase('rebooting') ?? '',
    updated_at: deps.clock.now(),
    ...(template === null && volumeCopyId === null
      ? { reboots_requested: pod.reboots_requested + 1 }
      : changeTo(pod, { kind, template, volumeCopyId })),
  };
  if (!(await movePod(tx, pod.id, 'rebooting', change, { from: ['running', 'reboot_failed'] }))) {
    const what = kind === 'reboot' ? 'rebooted' : 'changed';
    throw new ApiError('pod_state_conflict', `A pod that is ${statusOf(pod)} cannot be ${what}`);
  }
  await recordPodEvent(tx, deps, pod, {
    subEventType: 'pod-reboot.requested',
    actor,
    toStatus: 'REBOOT_PENDING',
    reason: 'user_initiated',
    facts: template === null ? {} : { detail: kind, template_id: template.id },
  });
  return { ...pod, ...change, state: 'rebooting' };
}

function changeTo(
  pod: Pod,
  change: { kind: ChangeKind; template: Template | null; volumeCopyId: string | null },
) {
  const { kind, template, volumeCopyId } = change;
  // The node may have accepted a generation that this row no longer contains.
  const generation = Math.max(pod.generation, pod.acknowledged_generation) + 1;
  const sshPublicKeys = podKeysOf(pod).map((key) => key.public_key);
  const previous = {
    generation: pod.generation,
    state: pod.state,
    spec_json: pod.spec_json,
    template_id: pod.template_id,
    template_json: pod.template_json,
    docker_credential_id: pod.docker_credential_id,
    edits_template: kind === 'edit' && template?.id === pod.template_id,
  };
  const spec =
    template === null
      ? { ...specOf(pod), generation, ssh_public_keys: sshPublicKeys }
      : specWith(pod, template, { generation, sshPublicKeys });
  return {
    generation,
    spec_json: JSON.stringify(volumeCopyId === null ? spec : specWithVolume(spec, volumeCopyId)),
    ...(template === null ? {} : templateColumns(template)),
    previous_json: JSON.stringify(previous),
  };
}

function templateColumns(template: Template) {
  return {
    template_id: template.id,
    template_json: JSON.stringify(templateResponse(template)),
    docker_credential_id: template.docker_credential_id,
    template_tried_at: template.updated_at,
  };
}

function specOf({ spec_json: json }: Pick<Pod, 'spec_json'>): PodSpecInput {
  return JSON.parse(json) as PodSpecInput;
}

/** Returns true if the pending change adds a volume, which is removed from the pod again if the change fails. */
export function bringsVolume(pod: Pod): boolean {
  const previous = previousOf(pod);
  return (
    previous !== null && specOf(previous).volume === undefined && specOf(pod).volume !== undefined
  );
}

export type ChangeOutcome = 'applied' | 'reverted';

/**
 * Returns the outcome of a change from the report of an agent whose pod no longer reboots; null if no change was
 * pending.
 */
export function changeOutcomeOf(pod: Pod, view: PodView): ChangeOutcome | null {
  if (pod.previous_json === null) return null;
  return view.change?.stage === 'failed' ? 'reverted' : 'applied';
}

/** Columns after a change has ended. The node retains the number of a reverted generation. */
export function changeOutcomeColumns(pod: Pod, end: ChangeOutcome) {
  const previous = previousOf(pod);
  if (end === 'applied' || previous === null) return { previous_json: null };
  const spec = JSON.parse(previous.spec_json) as PodSpecInput;
  return {
    ...contentOf(previous),
    spec_json: JSON.stringify({ ...spec, generation: pod.generation }),
  };
}

/** Columns after the node refused the generation. */
export function refusalColumns(previous: Previous) {
  const { generation, spec_json } = previous;
  return { ...contentOf(previous), generation, spec_json };
}

function contentOf({ template_id, template_json, docker_credential_id }: Previous) {
  return { template_id, template_json, docker_credential_id, previous_json: null };
}

/**
 * Updates one-time templates after a change. After a success the pod's former template is used up; after a failure the
 * new template counts as unused. A failed edit also restores the account's own template.
 */
export async function updateTemplates(
  tx: Db,
  pod: Pod,
  end: ChangeOutcome,
  nowMs: number,
): Promise<void> {
  const previous = previousOf(pod);
  if (previous === null) return;
  if (end === 'reverted' && previous.edits_template) {
    const before = TemplateResponse.parse(templateOf(previous));
    const at = { editedMs: pod.template_tried_at, nowMs };
    return revertTemplateEdit(tx, pod.account_id, before, at);
  }
  if (previous.template_id === pod.template_id) return;
  if (end === 'reverted') await unmarkTemplateRented(tx, pod.template_id);
  else await retireTemplate(tx, previous.template_id, nowMs);
}
