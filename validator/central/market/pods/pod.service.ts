/** What renters do with their pods. Effects on nodes are left to the sync: a row says what is wanted. */

import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { AccountEvent, EventsQuery } from '../../delivery/events/event.schemas.ts';
import { lastPodEvent, listPodEvents } from '../../delivery/events/event.service.ts';
import { spentOf, spentOn } from '../../money/metering/spent.ts';
import type { Database, Db, Pod } from '../../platform/database/tables.ts';
import { moneyTransaction } from '../../platform/database/transactions.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import {
  assertPlace,
  type FilterSubject,
  filterNodes,
  namedPredicates,
  type Predicate,
  subjectOf,
} from '../executors/executor.filters.ts';
import { type ExecutorEntry, findExecutor, findExecutors } from '../executors/executor.service.ts';
import { NO_NOTES, type NotesOf } from '../executors/node-notes.ts';
import type { VolumeResponse } from '../volumes/volume.schemas.ts';
import type { Caller } from './caller.ts';
import type { NotebookTokenOf } from './notebook-token.ts';
import { podRow } from './pod.row.ts';
import type {
  AddSshKeysRequest,
  PodDetailResponse,
  PodListItemResponse,
  PodListQuery,
} from './pod.schemas.ts';
import { listLiveOn, listVisible } from './pod.store.ts';
import { goneAtOf, podNotFound, requireAnyOwnPod, requireOwnPod } from './pod-access.ts';
import { beginRestart, changedTemplateOf } from './pod-change.ts';
import { FAILED_LISTED_MS } from './pod-dues.ts';
import { addKeys } from './pod-keys.ts';
import { askForNotebook } from './pod-notebook.ts';
import { beginRemoval, changeUnlessGoing, scheduleRemoval } from './pod-removal.ts';
import { removalTimeOf } from './removal-time.ts';

export { insertPod, listAliveOn, listLiveOf, listStayingOn, type NewPod } from './pod.store.ts';

export type PodsDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  /** Has the sync look at this executor at once. */
  wake(executorId: string): void;
  notebookToken: NotebookTokenOf;
  notesOf: NotesOf;
  volumesOfPods: VolumesOfPods;
  /** The schedule of a pod's backups. */
  backupConfigOf(db: Db, pod: Pod): Promise<PodDetailResponse['backup_config']>;
};

/** The rows of the volumes that these pods have, by pod. */
export type VolumesOfPods = (
  db: Db,
  pods: readonly Pick<Pod, 'id' | 'spec_json'>[],
) => Promise<ReadonlyMap<string, VolumeResponse>>;

export type Pods = ReturnType<typeof createPods>;

/** Rules of the pod routes. */
export function createPods(deps: PodsDeps) {
  const { db, clock, notebookToken } = deps;

  async function rowOf(handle: Db, pod: Pod): Promise<PodListItemResponse> {
    const volume = (await deps.volumesOfPods(handle, [pod])).get(pod.id) ?? null;
    const executor = await executorUnder(handle, pod);
    const spent = await spentOn(handle, pod.id);
    return podRow(pod, executor, clock.now(), notebookToken(pod), volume, spent);
  }

  /** Runs `change` on the caller's pod in one transaction and answers the row that comes of it. */
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

  async function requireVolume(tx: Db, pod: Pod, volumeId: string): Promise<void> {
    if ((await deps.volumesOfPods(tx, [pod])).get(pod.id)?.id === volumeId) return;
    throw new ApiError('bad_request', 'A reboot does not give the pod another volume', {
      hint: 'Reboot without volume_id; a pod gets its volume with the rental.',
    });
  }

  return {
    async list(caller: UserIdentity, query: PodListQuery): Promise<PodListItemResponse[]> {
      assertPlace(query);
      const pods = await listVisible(db, caller.accountId, clock.now() - FAILED_LISTED_MS);
      const executors = await findExecutors(db, [...new Set(pods.map((pod) => pod.executor_id))]);
      const byId = new Map(executors.map((executor) => [executor.id, executor]));
      const pairs = pods.flatMap((pod): PodOnNode[] => {
        const executor = byId.get(pod.executor_id);
        if (executor === undefined) return [];
        const subject = subjectOf(executor, pod.price_uusd_per_gpu_hour, pod.gpu_count);
        return [{ ...subject, pod, executor }];
      });
      const favorites = { name: 'only_favorites', keep: isFavorite };
      const { bookmarked, machine_request_id: requestId } = query;
      // Lists are polled, seldom by what was noted about nodes.
      const byNotes = bookmarked !== undefined || requestId !== undefined;
      const notes = byNotes ? await deps.notesOf(db, caller.accountId, requestId) : NO_NOTES;
      const predicates: Predicate<PodOnNode>[] = namedPredicates(query, notes);
      if (query.only_favorites === true) predicates.push(favorites);
      const { items } = filterNodes(pairs, predicates);
      const volumes = await deps.volumesOfPods(
        db,
        items.map(({ pod }) => pod),
      );
      const spent = await spentOf(
        db,
        items.map(({ pod }) => pod.id),
      );
      return items.map(({ pod, executor }) => {
        const volume = volumes.get(pod.id) ?? null;
        const token = notebookToken(pod);
        return podRow(pod, executor, clock.now(), token, volume, spent.get(pod.id) ?? 0);
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
      return {
        ...(await rowOf(db, pod)),
        executor_status: { logs: [] },
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

    /** Legacy un-rent: the caller's only pod on a node. */
    async removeOnly(caller: Caller, executorId: string): Promise<PodListItemResponse> {
      const [pod, ...others] = await listLiveOn(db, caller.identity.accountId, executorId);
      if (pod === undefined) throw podNotFound(`You have no pod on node ${executorId}`);
      if (others.length > 0) {
        throw new ApiError('bad_request', `You have ${others.length + 1} pods on this node`, {
          hint: 'Delete the one you mean with DELETE /pods/{id}.',
        });
      }
      return this.remove(caller, pod.id);
    },

    /**
     * The same container again, unless the pod's template is the account's own and was changed since: then a
     * container of the new template takes its place (PUT /templates/{id}, then reboot). Throws `bad_request` for a
     * `volumeId` that is not that of the pod's volume.
     */
    async reboot(
      caller: Caller,
      id: string,
      volumeId: string | null,
    ): Promise<PodListItemResponse> {
      const row = await changeOwn(caller, id, async (tx, pod) => {
        if (volumeId !== null) await requireVolume(tx, pod, volumeId);
        const template = await changedTemplateOf(tx, pod);
        return beginRestart(tx, deps, pod, { actor: caller.actor, kind: 'reboot', template });
      });
      deps.wake(row.executor_id);
      return row;
    },

    /** In force on the node a moment later, for new logins; nothing restarts. */
    async addSshKeys(caller: Caller, id: string, request: AddSshKeysRequest) {
      const answer = await db.transaction().execute(async (tx) => {
        const pod = await requireOwnPod(tx, caller.identity.accountId, id, clock.now());
        const { added, alreadyPresent, ...done } = await addKeys(tx, pod, request, clock.now());
        return { ...(await rowOf(tx, done.pod)), added, already_present: alreadyPresent };
      });
      deps.wake(answer.executor_id);
      return answer;
    },

    /** Begins on the node a moment later; the row tells how it went. */
    async installJupyter(caller: Caller, id: string, port: number): Promise<PodListItemResponse> {
      const row = await changeOwn(caller, id, (tx, pod) =>
        askForNotebook(tx, pod, port, clock.now()),
      );
      deps.wake(row.executor_id);
      return row;
    },

    like: (caller: Caller, id: string) =>
      changeOwn(caller, id, async (tx, pod) => {
        const change = { is_favorite: pod.is_favorite === 1 ? 0 : 1 } as const;
        await changeUnlessGoing(tx, pod, change);
        return { ...pod, ...change };
      }),

    scheduleRemoval: (caller: Caller, id: string, time: string) =>
      changeOwn(caller, id, (tx, pod) => {
        const removalAt = removalTimeOf(time, clock.now());
        return scheduleRemoval(tx, deps, pod, { actor: caller.actor, removalAt });
      }),

    cancelRemoval: (caller: Caller, id: string) =>
      changeOwn(caller, id, (tx, pod) => {
        if (pod.removal_at === null) {
          throw new ApiError('pod_state_conflict', 'No removal is scheduled for this pod');
        }
        return scheduleRemoval(tx, deps, pod, { actor: caller.actor, removalAt: null });
      }),

    /** Oldest first, of ended pods as well. */
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
