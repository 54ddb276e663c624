/** Operations of renters on their pods. Requests change rows; the sync applies them on the nodes. */

import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { AccountEvent, EventsQuery } from '../../delivery/events/event.schemas.ts';
import { lastPodEvent, listPodEvents } from '../../delivery/events/event.service.ts';
import { spentOf, spentOn } from '../../money/metering/statement.service.ts';
import type { Database, Db, Pod } from '../../platform/database/tables.ts';
import { moneyTransaction } from '../../platform/database/transactions.ts';
import { type Actor, type Caller, hasScope, type UserIdentity } from '../../platform/identity.ts';
import { type ExecutorEntry, findExecutor, findExecutors } from '../executors/executor.service.ts';
import { type AnnotationsOf, NO_ANNOTATIONS } from '../executors/node-annotations.ts';
import { type FilterSubject, nodeConstraints, subjectOf } from '../executors/node-filters.ts';
import { assertPlace } from '../executors/place-constraints.ts';
import type { VolumeResponse } from '../volumes/volume.schemas.ts';
import type {
  PodDetailResponse,
  PodHistoryQuery,
  PodHistoryResponse,
  PodListItemResponse,
  PodListQuery,
} from './pod.schemas.ts';
import { countEnded, listEnded, listLiveOn, listUnendedOf, listVisible } from './pod.store.ts';
import {
  FAILED_LISTED_MS,
  goneAtOf,
  podNotFound,
  requireAnyOwnPod,
  requireOwnPod,
} from './pod-access.ts';
import type { AddSshKeysRequest } from './pod-change.schemas.ts';
import { beginRestart, changedTemplateOf } from './pod-change.ts';
import { addSshKeysTo } from './pod-keys.ts';
import { type NotebookTokenOf, requestNotebook } from './pod-notebook.ts';
import {
  beginRemoval,
  changeUnlessRemoving,
  parseRemovalTime,
  scheduleRemoval,
} from './pod-removal.ts';
import { podResponse } from './pod-response.ts';

export {
  hasLaunchOn,
  insertPod,
  listKeptOn,
  listLiveOf,
  listLiveOfKey,
  listUnendedOn,
} from './pod.store.ts';

export type PodsDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  /** Queues an immediate sync of this executor. */
  wake(executorId: string): void;
  notebookToken: NotebookTokenOf;
  annotationsOf: AnnotationsOf;
  volumesOfPods: VolumesOfPods;
  attachVolume: AttachVolume;
  backupConfigOf(db: Db, pod: Pod): Promise<PodDetailResponse['backup_config']>;
};

/** Responses for the volumes of these pods, by pod id. */
export type VolumesOfPods = (
  db: Db,
  pods: readonly Pick<Pod, 'id' | 'spec_json'>[],
) => Promise<ReadonlyMap<string, VolumeResponse>>;

/**
 * Attaches a volume to a pod without one and returns the id of the copy that the pod mounts. Throws `volume_not_found`
 * and `forbidden`, and `conflict` while another pod has the volume or its data is being saved on another node.
 */
export type AttachVolume = (tx: Db, pod: Pod, volumeId: string, actor: Actor) => Promise<string>;

/** Notebook token in responses of ended pods, which have no notebook server. */
const NO_TOKEN = '';

/** Hidden, because the address of a notebook server contains a token that opens a shell in the pod. */
function visibleTo(caller: UserIdentity, row: PodListItemResponse): PodListItemResponse {
  return hasScope(caller, 'rent') ? row : { ...row, jupyter_url: null };
}

export type Pods = ReturnType<typeof createPods>;

export function createPods(deps: PodsDeps) {
  const { db, clock, notebookToken } = deps;

  async function rowOf(handle: Db, pod: Pod): Promise<PodListItemResponse> {
    const volume = (await deps.volumesOfPods(handle, [pod])).get(pod.id) ?? null;
    const executor = await executorUnder(handle, pod);
    const spent = await spentOn(handle, pod.id, clock.now());
    return podResponse(pod, executor, clock.now(), notebookToken(pod), volume, spent);
  }

  /** Runs `change` on the caller's pod in one transaction and returns the changed pod. */
  async function changeOwn(
    caller: Caller,
    id: string,
    change: (tx: Db, pod: Pod) => Promise<Pod>,
  ): Promise<PodListItemResponse> {
    return moneyTransaction(deps, async (tx) => {
      const pod = await requireOwnPod(tx, caller.identity.accountId, id, clock.now());
      return rowOf(tx, await change(tx, pod));
    });
  }

  /** Attaches the volume and returns its copy; null if the pod already has this volume. */
  async function volumeCopyFor(tx: Db, pod: Pod, volumeId: string, actor: Actor) {
    const present = (await deps.volumesOfPods(tx, [pod])).get(pod.id);
    if (present === undefined) return deps.attachVolume(tx, pod, volumeId, actor);
    if (present.id === volumeId) return null;
    throw new ApiError('bad_request', `The pod already has the volume ${present.id}`, {
      hint: 'A pod has one volume at /mnt. Reboot without volume_id.',
    });
  }

  return {
    async list(caller: UserIdentity, query: PodListQuery): Promise<PodListItemResponse[]> {
      assertPlace(query);
      const pods =
        query.include_deleting === true
          ? await listUnendedOf(db, caller.accountId)
          : await listVisible(db, caller.accountId, clock.now() - FAILED_LISTED_MS);
      const executors = await findExecutors(db, [...new Set(pods.map((pod) => pod.executor_id))]);
      const byId = new Map(executors.map((executor) => [executor.id, executor]));
      const pairs = pods.flatMap((pod): PodOnNode[] => {
        const executor = byId.get(pod.executor_id);
        if (executor === undefined) return [];
        const subject = subjectOf(executor, pod.price_uusd_per_gpu_hour, pod.gpu_count);
        return [{ ...subject, pod, executor }];
      });
      const { bookmarked, machine_request_id: requestId } = query;
      // Lists are polled often but rarely filtered by annotations.
      const byAnnotation = bookmarked !== undefined || requestId !== undefined;
      const annotations = byAnnotation
        ? await deps.annotationsOf(db, caller.accountId, requestId)
        : NO_ANNOTATIONS;
      const filters = nodeConstraints(query, annotations).map(({ keep }) => keep);
      const isWanted = query.only_favorites === true ? [...filters, isFavorite] : filters;
      const items = pairs.filter((pair) => isWanted.every((keep) => keep(pair)));
      const volumes = await deps.volumesOfPods(
        db,
        items.map(({ pod }) => pod),
      );
      const spent = await spentOf(
        db,
        items.map(({ pod }) => pod.id),
        clock.now(),
      );
      return items.map(({ pod, executor }) => {
        const volume = volumes.get(pod.id) ?? null;
        const token = notebookToken(pod);
        const cost = spent.get(pod.id) ?? 0;
        return visibleTo(caller, podResponse(pod, executor, clock.now(), token, volume, cost));
      });
    },

    async get(
      caller: UserIdentity,
      id: string,
      includeDeleted: boolean,
    ): Promise<PodDetailResponse> {
      const pod = includeDeleted
        ? await requireAnyOwnPod(db, caller.accountId, id)
        : await requireOwnPod(db, caller.accountId, id, clock.now());
      const goneAt = goneAtOf(pod, clock.now());
      const row = await rowOf(db, pod);
      return {
        ...visibleTo(caller, row),
        executor_status: { logs: row.message === null ? [] : [row.message] },
        last_event: await lastPodEvent(db, id),
        backup_config: await deps.backupConfigOf(db, pod),
        ...(goneAt === null ? {} : { status: 'DELETED', deleted_at: naiveUtc(goneAt) }),
      };
    },

    async remove(caller: Caller, id: string): Promise<PodListItemResponse> {
      const request = { actor: caller.actor, reason: 'user_initiated' } as const;
      const row = await changeOwn(caller, id, (tx, pod) => beginRemoval(tx, deps, pod, request));
      deps.wake(row.executor_id);
      return row;
    },

    /** Removes the caller's only pod on a node, for DELETE /executors/{id}/rent. */
    async removeOnly(caller: Caller, executorId: string): Promise<PodListItemResponse> {
      const [pod, ...others] = await listLiveOn(db, caller.identity.accountId, executorId);
      if (pod === undefined) throw podNotFound(`You have no pod on node ${executorId}`);
      if (others.length > 0) {
        throw new ApiError('bad_request', `You have ${others.length + 1} pods on this node`, {
          hint: 'Delete the pod by its id with DELETE /pods/{id}.',
        });
      }
      return this.remove(caller, pod.id);
    },

    /**
     * Restarts the container. If the pod's template belongs to the account and has changed, a container of the changed
     * template replaces the present one. With `volumeId`, the container is replaced by one with that volume, once the
     * node has the volume's data. Throws `bad_request` if the pod has another volume, and the errors of `attachVolume`.
     */
    async reboot(
      caller: Caller,
      id: string,
      volumeId: string | null,
    ): Promise<PodListItemResponse> {
      const row = await changeOwn(caller, id, async (tx, pod) => {
        const { actor } = caller;
        const volumeCopyId =
          volumeId === null ? null : await volumeCopyFor(tx, pod, volumeId, actor);
        const template = await changedTemplateOf(tx, pod);
        return beginRestart(tx, deps, pod, { actor, kind: 'reboot', template, volumeCopyId });
      });
      deps.wake(row.executor_id);
      return row;
    },

    /** Adds keys to a pod without a restart. The keys apply to new logins after the next sync. */
    async addSshKeys(caller: Caller, id: string, request: AddSshKeysRequest) {
      const answer = await db.transaction().execute(async (tx) => {
        const pod = await requireOwnPod(tx, caller.identity.accountId, id, clock.now());
        const { added, alreadyPresent, ...done } = await addSshKeysTo(
          tx,
          pod,
          request,
          clock.now(),
        );
        return { ...(await rowOf(tx, done.pod)), added, already_present: alreadyPresent };
      });
      deps.wake(answer.executor_id);
      return answer;
    },

    /** Requests a notebook server, which starts with the next sync. The pod's response shows the outcome. */
    async installJupyter(caller: Caller, id: string, port: number): Promise<PodListItemResponse> {
      const row = await changeOwn(caller, id, (tx, pod) =>
        requestNotebook(tx, pod, port, clock.now()),
      );
      deps.wake(row.executor_id);
      return row;
    },

    like: (caller: Caller, id: string) =>
      changeOwn(caller, id, async (tx, pod) => {
        const change = { is_favorite: pod.is_favorite === 1 ? 0 : 1 } as const;
        await changeUnlessRemoving(tx, pod, change);
        return { ...pod, ...change };
      }),

    scheduleRemoval: (caller: Caller, id: string, time: string) =>
      changeOwn(caller, id, (tx, pod) => {
        const removalAt = parseRemovalTime(time, clock.now());
        return scheduleRemoval(tx, deps, pod, { actor: caller.actor, removalAt });
      }),

    cancelRemoval: (caller: Caller, id: string) =>
      changeOwn(caller, id, (tx, pod) => {
        if (pod.removal_at === null) {
          throw new ApiError('pod_state_conflict', 'No removal is scheduled for this pod');
        }
        return scheduleRemoval(tx, deps, pod, { actor: caller.actor, removalAt: null });
      }),

    /**
     * Pods that have ended, most recently ended first. A failed creation is listed once its node has removed the pod.
     */
    async history(
      { accountId }: UserIdentity,
      { page, limit }: PodHistoryQuery,
    ): Promise<PodHistoryResponse> {
      const offset = (page - 1) * limit;
      const pods = await listEnded(db, accountId, { offset, limit });
      const executors = await findExecutors(db, [...new Set(pods.map((pod) => pod.executor_id))]);
      const byId = new Map(executors.map((executor) => [executor.id, executor]));
      const spent = await spentOf(
        db,
        pods.map(({ id }) => id),
        clock.now(),
      );
      const items = pods.flatMap((pod) => {
        const executor = byId.get(pod.executor_id);
        if (executor === undefined || pod.ended_at === null) return [];
        const row = podResponse(pod, executor, clock.now(), NO_TOKEN, null, spent.get(pod.id) ?? 0);
        return [{ ...row, deleted_at: naiveUtc(pod.ended_at) }];
      });
      const total = await countEnded(db, accountId);
      return { items, total, page, limit, has_next: offset + limit < total };
    },

    /** Lists the events of a pod, whether or not the pod has ended, oldest first. */
    async events(caller: UserIdentity, id: string, query: EventsQuery): Promise<AccountEvent[]> {
      await requireAnyOwnPod(db, caller.accountId, id);
      return listPodEvents(db, id, query);
    },
  };
}

async function executorUnder(db: Db, pod: Pod): Promise<ExecutorEntry> {
  const executor = await findExecutor(db, pod.executor_id);
  if (executor === undefined) throw new Error(`executor ${pod.executor_id} of a pod is missing`);
  return executor;
}

type PodOnNode = FilterSubject & { pod: Pod; executor: ExecutorEntry };

function isFavorite({ pod }: PodOnNode): boolean {
  return pod.is_favorite === 1;
}
