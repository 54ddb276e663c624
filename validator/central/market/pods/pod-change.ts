/**
 * Changing what a pod runs (contract 5.2, edit and switch-template). The row gets a new generation, which the
 * sync sends to the node, and remembers what it had: the node returns to that by itself when the new one fails,
 * and the row follows. While a change is under way the pod counts as rebooting.
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
import { toTemplateRow } from '../templates/template.service.ts';
import {
  ownTemplateChangedSince,
  retireTemplate,
  revertTemplateEdit,
  unmarkTemplateRented,
} from '../templates/template-use.service.ts';
import { statusOf } from './pod.row.ts';
import type { PodTemplate } from './pod.schemas.ts';
import { POD_STATES, wirePhase } from './pod.state.ts';
import { movePod } from './pod.store.ts';
import { recordPodEvent } from './pod-event.ts';
import { podKeysOf } from './pod-keys.ts';
import { changedSpecFor } from './pod-spec.ts';

/** What a pod was before the change under way. */
const Previous = z.object({
  generation: z.int(),
  state: z.enum(['running', 'reboot_failed']),
  spec_json: z.string(),
  template_id: z.string(),
  template_json: z.string(),
  docker_credential_id: z.string().nullable(),
  /** The pod's own template was changed for it, and is to be put back if that comes to nothing. */
  edits_template: z.boolean(),
});
export type Previous = z.output<typeof Previous>;

/** What a template's image is told by; a pod with a Dockerfile keeps its build while these stay as they are. */
const IMAGE_COLUMNS = ['docker_image', 'docker_image_tag', 'docker_image_digest'] as const;

export type ChangeKind = 'reboot' | 'edit' | 'switch-template';

/** Null while no change is under way. */
export function previousOf(pod: Pick<Pod, 'previous_json'>): Previous | null {
  return pod.previous_json === null ? null : Previous.parse(JSON.parse(pod.previous_json));
}

/** The template's row as the pod runs it. */
export function templateOf(pod: Pick<Pod, 'template_json'>): PodTemplate {
  return JSON.parse(pod.template_json) as PodTemplate;
}

/** What the pod would run with this template. Throws `template_invalid`. */
function specWith(
  pod: Pod,
  template: Template,
  { generation, sshPublicKeys }: { generation: number; sshPublicKeys: readonly string[] },
): PodSpecInput {
  const ran = templateOf(pod);
  return changedSpecFor(JSON.parse(pod.spec_json) as PodSpecInput, {
    template,
    keepsImage: IMAGE_COLUMNS.every((column) => ran[column] === template[column]),
    // A notebook server's port was asked for apart from the template, also where it is one of its.
    templatePorts: templatePortsOf(pod).filter((port) => port !== pod.jupyter_port),
    generation,
    sshPublicKeys,
  });
}

function templatePortsOf(pod: Pod): number[] {
  return (templateOf(pod)['internal_ports'] ?? []) as number[];
}

/** The pod's own template, where it was changed since the pod last tried it and says something else by now. */
export async function changedTemplateOf(tx: Db, pod: Pod): Promise<Template | null> {
  const sinceMs = pod.template_tried_at ?? pod.created_at;
  const template = await ownTemplateChangedSince(tx, pod.account_id, pod.template_id, sinceMs);
  if (template === null) return null;
  const present = JSON.parse(pod.spec_json) as PodSpecInput;
  const { generation, ssh_public_keys: sshPublicKeys = [] } = present;
  const next = specWith(pod, template, { generation, sshPublicKeys });
  return isDeepStrictEqual(next, present) ? null : template;
}

/** The row as it is now. Throws `pod_state_conflict` unless the pod runs, or failed to reboot. */
export async function beginRestart(
  tx: Db,
  deps: { clock: Clock; random: Random },
  pod: Pod,
  request: { actor: Actor; kind: ChangeKind; template: Template | null },
): Promise<Pod> {
  const { actor, kind, template } = request;
  const change = {
    phase: wirePhase('rebooting') ?? '',
    updated_at: deps.clock.now(),
    ...(template === null
      ? { reboots_requested: pod.reboots_requested + 1 }
      : changeTo(pod, template, kind)),
  };
  const states = POD_STATES.filter((state) => state !== 'unknown');
  if (!(await movePod(tx, pod.id, 'rebooting', change, { from: states }))) {
    const what = kind === 'reboot' ? 'rebooted' : 'changed';
    throw new ApiError('pod_state_conflict', `A pod that is ${statusOf(pod)} cannot be ${what}`);
  }
  await recordPodEvent(tx, deps, pod, {
    subEventType: 'pod-reboot.requested',
    actor,
    ...{ toStatus: 'REBOOT_PENDING', reason: 'user_initiated' },
    facts: template === null ? {} : { detail: kind, template_id: template.id },
  });
  return { ...pod, ...change, state: 'rebooting' };
}

function changeTo(pod: Pod, template: Template, kind: ChangeKind) {
  // The node may have taken a generation of which nothing is known here any more.
  const generation = Math.max(pod.generation, pod.acknowledged_generation) + 1;
  const sshPublicKeys = podKeysOf(pod).map((key) => key.public_key);
  const previous = {
    generation: pod.generation,
    state: pod.state,
    spec_json: pod.spec_json,
    template_id: pod.template_id,
    template_json: pod.template_json,
    docker_credential_id: pod.docker_credential_id,
    edits_template: kind === 'edit' && template.id === pod.template_id,
  };
  return {
    generation,
    spec_json: JSON.stringify(specWith(pod, template, { generation, sshPublicKeys })),
    template_id: template.id,
    template_json: JSON.stringify(toTemplateRow(template)),
    docker_credential_id: template.docker_credential_id,
    template_tried_at: template.updated_at,
    previous_json: JSON.stringify(previous),
  };
}

/** How a change has ended on the node. */
export type ChangeEnd = 'done' | 'undone';

/** By what the node says once the pod counts as rebooting no more; null where no change was under way. */
export function changeEndOf(pod: Pod, view: PodView): ChangeEnd | null {
  if (pod.previous_json === null) return null;
  return view.change?.stage === 'failed' ? 'undone' : 'done';
}

/** What the row is to say after it. The node keeps the number of a generation that it gave up. */
export function changeEndPatch(pod: Pod, end: ChangeEnd) {
  const previous = previousOf(pod);
  if (end === 'done' || previous === null) return { previous_json: null };
  const spec = JSON.parse(previous.spec_json) as PodSpecInput;
  return {
    ...contentOf(previous),
    spec_json: JSON.stringify({ ...spec, generation: pod.generation }),
  };
}

/** The same where the node has never taken the generation. */
export function refusalPatch(previous: Previous) {
  const { generation, spec_json } = previous;
  return { ...contentOf(previous), generation, spec_json };
}

function contentOf({ template_id, template_json, docker_credential_id }: Previous) {
  return { template_id, template_json, docker_credential_id, previous_json: null };
}

/**
 * Templates for one use follow the pod: the one it left is done with, one that it did not come to is not.
 * An edit that came to nothing leaves the template as it was.
 */
export async function settleTemplates(
  tx: Db,
  pod: Pod,
  end: ChangeEnd,
  nowMs: number,
): Promise<void> {
  const previous = previousOf(pod);
  if (previous === null) return;
  if (end === 'undone' && previous.edits_template) {
    const before = TemplateResponse.parse(templateOf(previous));
    const at = { editedMs: pod.template_tried_at, nowMs };
    return revertTemplateEdit(tx, pod.account_id, before, at);
  }
  if (previous.template_id === pod.template_id) return;
  if (end === 'undone') await unmarkTemplateRented(tx, pod.template_id);
  else await retireTemplate(tx, previous.template_id, nowMs);
}
