/** Makes the pods of one executor and its agent agree: every step may be repeated, none is remembered. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import { registryAddressOf } from '#shared/api/agent/images.ts';
import type { PodPutInput, PodSpecInput, PodView } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, type ErrorCode } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import { withRequestId } from '#shared/runtime/request-context.ts';
import { newestRequestId } from '../../delivery/events/event.service.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import type { Database, Db, Pod } from '../../platform/database/tables.ts';
import type { Agents } from '../../platform/ports.ts';
import { findExecutor, noteSeen } from '../executors/executor.service.ts';
import type { NotebookTokenOf } from './notebook-token.ts';
import { findPod, isBeingCreated, listAliveOn } from './pod.store.ts';
import { isUnanswered } from './pod-contact.ts';
import { createIdleWatch } from './pod-idle.ts';
import { createPodSilence, type PodSilenceDeps } from './pod-silence.ts';
import { needsAttention, nextStep, type SyncStep } from './pod-sync.plan.ts';
import { createPodRecorder } from './pod-sync.record.ts';

/** An agent that has not taken a pod for this long does not get it any more. */
export const LAUNCH_DEADLINE_MS = 600_000;

/** Refusals of a spec that sending it again cannot mend. */
const FATAL_CODES: readonly ErrorCode[] = [
  'spec_refused',
  'validation_error',
  'bad_request',
  'client_error',
  // The id was removed on the node, or stands there for something else.
  'conflict',
];

type AskingStep = Exclude<SyncStep, { do: 'wait' | 'observe' }>;

/** Ids of unknown pods that were logged: each once, the memory bounded. */
const MAX_LOGGED_IDS = 1_000;

export type SyncDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  log: Log;
  mails: Mails;
  agents: Agents;
  /** What a Docker credential holds; null for one that is gone, or another account's. */
  loginOf(
    credentialId: string,
    accountId: string,
  ): Promise<{ username: string; password: string } | null>;
  notebookToken: NotebookTokenOf;
  /** Backups and restores, which are long work on the same agents. */
  operations: OperationPasses;
  /** Volumes, which are there before the pods that get them. */
  volumes: VolumePasses;
  inMaintenance: PodSilenceDeps['inMaintenance'];
  /** Nothing of the pod is left on its node: its volume is free of it. In the transaction that ends the pod. */
  detachVolume(tx: Db, podId: string): Promise<void>;
};

/** What else an agent is asked in its executor's turn. */
export type OperationPasses = {
  /** Whether to come back soon. Rejects with ApiError when the agent does not answer. */
  pass(client: AgentClient, executorId: string): Promise<boolean>;
  /** Whether a restore that was rented with the pod is still to end. */
  restoresAtStart(podId: string): Promise<boolean>;
  /** The agent does not answer. */
  unanswered(executorId: string): Promise<void>;
};

/** Pods that wait for their volumes, and why; `isFinal`: in vain. */
export type VolumeHolds = ReadonlyMap<string, { message: string; isFinal: boolean }>;

/** What an agent that answers is asked for its volumes. */
export type VolumePasses = {
  /** One pass with it; null where no volume is on it. Rejects with ApiError when it no longer answers. */
  pass(client: AgentClient, executorId: string): Promise<VolumeHolds | null>;
  /** Whether to come back soon. */
  isWorking(executorId: string): Promise<boolean>;
};

/**
 * How an executor was found; `refused`: its agent answers, yet does not do as asked for the time being; `working`: it
 * backs up or restores.
 */
export type SyncResult = 'busy' | 'calm' | 'refused' | 'working' | 'unreachable';

/** One pass over one executor. Never rejects because an agent does not answer. */
export function createPodSync(deps: SyncDeps) {
  const { db, clock, log } = deps;
  const { restoresAtStart } = deps.operations;
  const record = createPodRecorder({ ...deps, restoresAtStart });
  const unanswered = createPodSilence({ ...deps, endCreation: record.endCreation });
  const watchIdle = createIdleWatch(deps);
  const logged = new Set<string>();

  /** The login is added on the way out: stored specs do not hold it. */
  async function putBody(pod: Pod): Promise<PodPutInput> {
    const spec = JSON.parse(pod.spec_json) as PodSpecInput;
    const { docker_credential_id: id, account_id: accountId } = pod;
    const isPulled = id !== null && 'reference' in spec.image;
    const login = isPulled ? await deps.loginOf(id, accountId) : null;
    if (login === null || !('reference' in spec.image)) return spec;
    return { ...spec, registry_auth: { host: registryAddressOf(spec.image.reference), ...login } };
  }

  async function put(client: AgentClient, pod: Pod, anew: boolean): Promise<void> {
    if (anew) await record.startedAnew(pod);
    try {
      const view = await client.putPod(pod.id, await putBody(pod));
      await record.observed(pod, view);
    } catch (error) {
      if (!(error instanceof ApiError) || !FATAL_CODES.includes(error.code)) throw error;
      await record.refused(pod, error.message);
    }
  }

  /** A refusal is the outcome, and asking again would bring the same. */
  async function askForNotebook(client: AgentClient, pod: Pod, view: PodView): Promise<void> {
    const { jupyter_port: internal_port, jupyter_requests: request } = pod;
    if (internal_port === null) return;
    try {
      const token = deps.notebookToken(pod);
      const asked = await client.postNotebook(pod.id, { internal_port, request, token });
      await record.observed(pod, asked);
    } catch (error) {
      if (!(error instanceof ApiError) || isUnanswered(error)) throw error;
      if (error.code === 'pod_state_conflict') throw error;
      await record.notebookRefused(pod, error.message);
      await record.observed(pod, view);
    }
  }

  async function remove(client: AgentClient, pod: Pod): Promise<void> {
    try {
      const view = await client.deletePod(pod.id);
      if (view.phase === 'removed') await record.gone(pod);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      await record.gone(pod);
    }
  }

  /** What the agent is asked goes on under the id of the request that it comes from. */
  async function perform(client: AgentClient, pod: Pod, step: SyncStep): Promise<void> {
    if (step.do === 'wait') return;
    if (step.do === 'observe') return record.observed(pod, step.view);
    const requestId = await newestRequestId(db, pod.id);
    await withRequestId(requestId, () => ask(client, pod, step));
  }

  async function ask(client: AgentClient, pod: Pod, step: AskingStep): Promise<void> {
    switch (step.do) {
      case 'put':
        return put(client, pod, step.anew);
      case 'reboot':
        return record.observed(pod, await client.rebootPod(pod.id, step.reboot));
      case 'ssh-keys':
        return record.observed(pod, await client.putSshKeys(pod.id, step.keys));
      case 'stand': {
        const view = await client.setStopped(pod.id, step.stopped);
        return step.stopped ? undefined : record.observed(pod, view);
      }
      case 'notebook':
        return askForNotebook(client, pod, step.view);
      case 'delete':
        return remove(client, pod);
      case 'gone':
        return record.gone(pod);
    }
  }

  /** What the agent runs although the market does not know it, or knows it as ended. */
  async function tidy(client: AgentClient, executorId: string, strays: PodView[]): Promise<void> {
    for (const view of strays) {
      const pod = await findPod(db, view.id);
      if (pod !== undefined && pod.executor_id === executorId) {
        if (pod.delete_requested_at !== null || pod.ended_at !== null)
          await client.deletePod(pod.id);
      } else if (!logged.has(view.id) && logged.size < MAX_LOGGED_IDS) {
        logged.add(view.id);
        log.warn({ pod_id: view.id, executor_id: executorId }, 'an agent runs an unknown pod');
      }
    }
  }

  /** A refusal concerns one pod; no answer concerns them all and ends the pass. False when one was refused. */
  async function performAll(
    client: AgentClient,
    pods: readonly Pod[],
    views: readonly PodView[],
    holds: VolumeHolds | null,
  ): Promise<boolean> {
    const byId = new Map(views.map((view) => [view.id, view]));
    let isAllDone = true;
    for (const pod of pods) {
      try {
        const step = nextStep(pod, byId.get(pod.id));
        const hold = holds?.get(pod.id);
        if (step.do !== 'put' || hold === undefined) await perform(client, pod, step);
        else if (hold.isFinal) await record.refused(pod, hold.message);
        else await record.awaitsVolume(pod, hold.message);
      } catch (error) {
        if (!(error instanceof ApiError) || isUnanswered(error)) throw error;
        log.warn({ pod_id: pod.id, code: error.code }, `an agent refused: ${error.message}`);
        isAllDone = false;
      }
    }
    return isAllDone;
  }

  async function giveUpLateLaunches(executorId: string): Promise<void> {
    const nowMs = clock.now();
    for (const pod of await listAliveOn(db, executorId)) {
      const untaken = isBeingCreated(pod) && pod.acknowledged_generation === 0;
      // One that waits for its volume was seen to wait.
      const sinceMs = pod.seen_at ?? pod.created_at;
      if (untaken && nowMs - sinceMs >= LAUNCH_DEADLINE_MS) await record.tooLate(pod);
    }
  }

  return async function syncExecutor(executorId: string): Promise<SyncResult> {
    const client = deps.agents.clientOf(executorId);
    const pods = await listAliveOn(db, executorId);
    let isAllDone: boolean;
    let isWorking: boolean;
    try {
      const views = await client.listPods();
      const executor = await findExecutor(db, executorId);
      if (executor !== undefined) await noteSeen(db, executor, clock.now());
      const holds = await deps.volumes.pass(client, executorId);
      isAllDone = await performAll(client, pods, views, holds);
      await watchIdle(client, pods);
      const known = new Set(pods.map((pod) => pod.id));
      const strays = views.filter((view) => !known.has(view.id) && view.desired === 'running');
      await tidy(client, executorId, strays);
      const isBackingUp = await deps.operations.pass(client, executorId);
      // Asked last: a pod may have left its volume in this very pass.
      isWorking = isBackingUp || (holds !== null && (await deps.volumes.isWorking(executorId)));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      await giveUpLateLaunches(executorId);
      await unanswered(executorId, pods);
      await deps.operations.unanswered(executorId);
      return 'unreachable';
    }
    await giveUpLateLaunches(executorId);
    if (!isAllDone) return 'refused';
    if ((await listAliveOn(db, executorId)).some(needsAttention)) return 'busy';
    return isWorking ? 'working' : 'calm';
  };
}
