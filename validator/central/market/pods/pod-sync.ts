/**
 * Reconciles the pod rows of one executor with the pods on its agent. Every step may be repeated, and no progress is
 * stored.
 */
import {
  type AgentClient,
  isClockRefusal,
  isWithoutResponse,
} from '#shared/api/agent/agent-client.ts';
import { registryAddressOf } from '#shared/api/agent/images.ts';
import type { PodPutInput, PodSpecInput, PodView } from '#shared/api/agent/pod.ts';
import type { PodSecret } from '#shared/api/agent/pod-secrets.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, type ErrorCode } from '#shared/runtime/errors.ts';
import type { ClockTrust } from '#shared/runtime/guarded-clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import { withRequestId } from '#shared/runtime/request-context.ts';
import { newestRequestId } from '../../delivery/events/event.service.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import { batchedRows } from '../../platform/database/batched.ts';
import type { Database, Db, Pod } from '../../platform/database/tables.ts';
import type { Agents } from '../../platform/ports.ts';
import { type DriftKind, recordDrift } from './drift.ts';
import { isLaunchLate } from './launch-limit.ts';
import { podStateOf } from './pod.state.ts';
import {
  changePod,
  findPod,
  isBeingCreated,
  listProgressOnNodes,
  listUnendedOnNodes,
  type PodProgress,
} from './pod.store.ts';
import { createLostContact, isUnanswered, type LostContactDeps } from './pod-contact.ts';
import { createIdleCheck } from './pod-idle.ts';
import type { NotebookTokenOf } from './pod-notebook.ts';
import { createPodRecorder } from './pod-recorder.ts';
import { needsAttention, nextStep, type SyncStep } from './pod-sync.plan.ts';
import type { SeenTimes } from './seen-times.ts';
import { AWAITS_DECISION } from './unknown-pods.plan.ts';
import type { UnknownPods } from './unknown-pods.ts';

/** Refusals of a spec that are final. */
const FATAL_CODES: readonly ErrorCode[] = [
  'spec_refused',
  'validation_error',
  'bad_request',
  'client_error',
  // The id was removed on the node, or the node uses the id for something else.
  'conflict',
];

type AgentStep = Exclude<SyncStep, { do: 'wait' | 'observe' }>;

export type SyncDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  log: Log;
  mails: Mails;
  agents: Agents;
  /** Returns the login of a registry credential; null if it was deleted or belongs to another account. */
  loginOf(
    credentialId: string,
    accountId: string,
  ): Promise<{ username: string; password: string } | null>;
  /** Opens the secrets with which the pod was rented. */
  secretsOf(podId: string): Promise<PodSecret[]>;
  notebookToken: NotebookTokenOf;
  /** Backups and restores on the same agents. */
  operations: OperationPasses;
  /** Volumes, which are restored before the pods that mount them start. */
  volumes: VolumePasses;
  unknownPods: Pick<UnknownPods, 'survey'>;
  inMaintenance: LostContactDeps['inMaintenance'];
  launchLimitMs: number;
  trust: ClockTrust;
  /** Receives the times at which nodes and pods of this pass answered. The caller stores them. */
  seen: SeenTimes;
  /** Detaches the volume of a pod that left its node. Runs in the transaction that ends the pod. */
  detachVolume(tx: Db, podId: string): Promise<void>;
};

/** Work on backups and restores that the sync does in the same pass. */
export type OperationPasses = {
  /** Returns true if the sync should call again soon. Rejects with ApiError if the agent does not answer. */
  pass(client: AgentClient, executorId: string): Promise<boolean>;
  /** Returns true while a restore that was requested with the rental has not ended. */
  restoresAtStart(podId: string): Promise<boolean>;
  unanswered(executorId: string): Promise<void>;
};

/** Pods that wait for their volumes, by pod id, with the reason. `isFinal`: the volume cannot be restored. */
export type PodsAwaitingVolumes = ReadonlyMap<string, { message: string; isFinal: boolean }>;

/** Work on volumes that the sync does in the same pass. */
export type VolumePasses = {
  /** Returns null if the executor has no volumes. Rejects with ApiError if the agent stops answering. */
  pass(client: AgentClient, executorId: string): Promise<PodsAwaitingVolumes | null>;
  /** Returns true if the sync should call again soon. */
  isWorking(executorId: string): Promise<boolean>;
  /** Returns true if the executor has, or may have, volumes. */
  hasCopies(executorId: string): Promise<boolean>;
};

/**
 * Outcome of a pass. `busy`: pods are in transition; `working`: a backup or restore runs; `refused`: the agent refused
 * a step temporarily.
 */
export type SyncResult = 'busy' | 'idle' | 'refused' | 'working' | 'unreachable';

/** `isEmpty`: the executor has neither pods nor volumes in the database. */
export type PassResult = { result: SyncResult; isEmpty: boolean };

/**
 * `syncExecutor` runs one pass over an executor, and does not reject if the agent does not answer. `suspendMeters` ends
 * the metered time of all pods until a pass reaches their agents.
 */
export function createPodSync(deps: SyncDeps) {
  const { db, clock, log, trust } = deps;
  const { restoresAtStart } = deps.operations;
  const unendedOn = batchedRows(
    (ids) => listUnendedOnNodes(db, ids),
    (pod) => pod.executor_id,
  );
  const progressOn = batchedRows(
    (ids) => listProgressOnNodes(db, ids),
    (pod) => pod.executor_id,
  );
  const record = createPodRecorder({ ...deps, restoresAtStart });
  const lostContact = createLostContact({ ...deps, failCreation: record.failCreation });
  const checkIdle = createIdleCheck(deps);

  /** Stored specs contain neither the registry login nor the values of secrets; both are added to the request. */
  async function putBody(pod: Pod): Promise<PodPutInput> {
    const body = await withLogin(pod);
    const hasSecrets = (body.secret_names ?? []).length > 0;
    return hasSecrets ? { ...body, secrets: await deps.secretsOf(pod.id) } : body;
  }

  async function withLogin(pod: Pod): Promise<PodPutInput> {
    const spec = JSON.parse(pod.spec_json) as PodSpecInput;
    const { docker_credential_id: id, account_id: accountId } = pod;
    const isPulled = id !== null && 'reference' in spec.image;
    const login = isPulled ? await deps.loginOf(id, accountId) : null;
    if (login === null || !('reference' in spec.image)) return spec;
    return { ...spec, registry_auth: { host: registryAddressOf(spec.image.reference), ...login } };
  }

  const foundDrift = (kind: DriftKind, executorId: string, podId: string) =>
    recordDrift(deps, { kind, executor_id: executorId, pod_id: podId });

  async function put(client: AgentClient, pod: Pod, isLost: boolean): Promise<void> {
    if (isLost) await record.resetReboots(pod);
    try {
      const view = await client.putPod(pod.id, await putBody(pod));
      if (isLost) await foundDrift('pod_lost', pod.executor_id, pod.id);
      await record.observed(pod, view);
    } catch (error) {
      if (!(error instanceof ApiError) || !FATAL_CODES.includes(error.code)) throw error;
      await record.refused(pod, error.message);
    }
  }

  /** Requests the notebook server. A refusal is final, because a repeated request would be refused too. */
  async function startNotebook(client: AgentClient, pod: Pod, view: PodView): Promise<void> {
    const { jupyter_port: internal_port, jupyter_requests: request } = pod;
    if (internal_port === null) return;
    try {
      const token = deps.notebookToken(pod);
      const started = await client.postNotebook(pod.id, { internal_port, request, token });
      await record.observed(pod, started);
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
      if (view.phase === 'removed') await record.removed(pod);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      await record.removed(pod);
    }
  }

  /** Performs a step. Calls to the agent carry the id of the API request that caused them. */
  async function perform(client: AgentClient, pod: Pod, step: SyncStep): Promise<void> {
    // The time that is still trusted is about to be corrected.
    if (step.do === 'wait' || trust.isStepping()) return;
    if (step.do === 'observe') return record.observed(pod, step.view);
    const requestId = await newestRequestId(db, pod.id);
    await withRequestId(requestId, () => callAgent(client, pod, step));
  }

  async function callAgent(client: AgentClient, pod: Pod, step: AgentStep): Promise<void> {
    switch (step.do) {
      case 'put':
        return put(client, pod, step.isLost);
      case 'reboot':
        return record.observed(pod, await client.rebootPod(pod.id, step.reboot));
      case 'ssh-keys':
        return record.observed(pod, await client.putSshKeys(pod.id, step.keys));
      case 'set-stopped': {
        const view = await client.setStopped(pod.id, step.stopped);
        return step.stopped ? undefined : record.observed(pod, view);
      }
      case 'notebook':
        return startNotebook(client, pod, step.view);
      case 'delete':
        return remove(client, pod);
      case 'removed':
        return record.removed(pod);
    }
  }

  /** Removes ended pods that the agent still runs. */
  async function removeEnded(
    client: AgentClient,
    executorId: string,
    left: readonly PodView[],
  ): Promise<void> {
    for (const view of left) {
      const pod = await findPod(db, view.id);
      if (pod === undefined || pod.executor_id !== executorId) continue;
      if (pod.delete_requested_at === null && pod.ended_at === null) continue;
      await client.deletePod(pod.id);
      await foundDrift('pod_left', executorId, pod.id);
    }
  }

  /**
   * Performs the next step of each pod. A refusal affects only one pod; a missing answer ends the pass. Returns false
   * if a step was refused. `unknown` are the ids of the node's unknown pods: such a pod stays as it is, and no new pod is
   * sent to the node.
   */
  async function performAll(
    client: AgentClient,
    pods: readonly Pod[],
    views: readonly PodView[],
    { waiting, unknown }: { waiting: PodsAwaitingVolumes | null; unknown: ReadonlySet<string> },
  ): Promise<boolean> {
    const byId = new Map(views.map((view) => [view.id, view]));
    let isAllDone = true;
    for (const pod of pods) {
      try {
        const step = nextStep(pod, byId.get(pod.id));
        const wait = waiting?.get(pod.id);
        const isNew = step.do === 'put' && isBeingCreated(pod);
        if (unknown.has(pod.id) || (isNew && unknown.size > 0)) await explain(pod, AWAITS_DECISION);
        else if (step.do !== 'put' || wait === undefined) await perform(client, pod, step);
        else if (wait.isFinal) await record.refused(pod, wait.message);
        else await record.awaitsVolume(pod, wait.message);
      } catch (error) {
        if (!(error instanceof ApiError) || isUnanswered(error)) throw error;
        log.warn(
          { pod_id: pod.id, code: error.code },
          `agent refused a sync step: ${error.message}`,
        );
        isAllDone = false;
      }
    }
    return isAllDone;
  }

  /**
   * Ends late launches and returns the progress of the pods that have not ended. Call it after the agent has answered,
   * because a launch that the agent reports as running is not late.
   */
  async function endLateLaunches(executorId: string): Promise<PodProgress[]> {
    const isLate = (pod: PodProgress) => isLaunchLate(pod, clock.now());
    const pods = await progressOn(executorId);
    if (trust.isSuspect() || !pods.some(isLate)) return pods;
    for (const pod of await unendedOn(executorId))
      if (isLate(pod)) await record.launchTimedOut(pod);
    return progressOn(executorId);
  }

  async function isEmpty(executorId: string, pods: readonly PodProgress[]): Promise<boolean> {
    return pods.length === 0 && !(await deps.volumes.hasCopies(executorId));
  }

  async function syncExecutor(executorId: string): Promise<PassResult> {
    if (trust.isStepping()) return { result: 'refused', isEmpty: false };
    const client = deps.agents.clientOf(executorId);
    const pods = await unendedOn(executorId);
    let isAllDone: boolean;
    let isWorking: boolean;
    try {
      const views = await client.listPods();
      deps.seen.addExecutor({ id: executorId, seen_at: clock.now() });
      const unknown = await deps.unknownPods.survey(client, executorId, views);
      const waiting = await deps.volumes.pass(client, executorId);
      const ids = new Set(unknown.keys());
      isAllDone = await performAll(client, pods, views, { waiting, unknown: ids });
      await checkIdle(client, pods);
      const known = new Set(pods.map((pod) => pod.id));
      const left = views.filter((view) => !known.has(view.id) && view.desired === 'running');
      await removeEnded(client, executorId, left);
      const isBackingUp = await deps.operations.pass(client, executorId);
      // Queried last, because this pass may have detached the volume of an ended pod.
      isWorking = isBackingUp || (waiting !== null && (await deps.volumes.isWorking(executorId)));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (isClockRefusal(error)) for (const pod of pods) await explain(pod, error.message);
      await lostContact.recordUnanswered(executorId, pods, !isWithoutResponse(error));
      await deps.operations.unanswered(executorId);
      return { result: 'unreachable', isEmpty: await isEmpty(executorId, pods) };
    }
    const left = await endLateLaunches(executorId);
    const rest = left.some(needsAttention) ? 'busy' : isWorking ? 'working' : 'idle';
    return { result: isAllDone ? rest : 'refused', isEmpty: await isEmpty(executorId, left) };
  }

  /** Shows the renter why the pod waits. The next report of the agent replaces the message. */
  async function explain(pod: Pod, message: string): Promise<void> {
    if (pod.message !== message) await changePod(db, pod.id, [podStateOf(pod.state)], { message });
  }

  return { syncExecutor, suspendMeters: lostContact.suspendMeters };
}
