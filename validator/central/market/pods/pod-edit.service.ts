/** Changes of a pod that its renter makes: its template, its content, its name and its limits. */
import { microOrNull } from '#shared/api/money.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { settleFirst } from '../../money/metering/settlement.service.ts';
import { spentOn } from '../../money/metering/statement.service.ts';
import type { Database, Db, Pod } from '../../platform/database/tables.ts';
import { moneyTransaction } from '../../platform/database/transactions.ts';
import type { Caller } from '../../platform/identity.ts';
import { findExecutor } from '../executors/executor.service.ts';
import type { CheckRegistry } from '../templates/registry-check.ts';
import { TemplateResponse, type UpdateTemplate } from '../templates/template.schemas.ts';
import { templateResponse } from '../templates/template.service.ts';
import {
  markTemplateRented,
  templateForEdit,
  templateForRent,
} from '../templates/template-use.service.ts';
import type { PodListItemResponse } from './pod.schemas.ts';
import type { VolumesOfPods } from './pod.service.ts';
import { findPod } from './pod.store.ts';
import { requireOwnPod } from './pod-access.ts';
import type { PodUpdateRequest } from './pod-change.schemas.ts';
import { beginRestart, templateOf } from './pod-change.ts';
import { resetIdle } from './pod-idle.ts';
import type { NotebookTokenOf } from './pod-notebook.ts';
import { changeUnlessRemoving, recordRemovalTime, removalAfter } from './pod-removal.ts';
import { podResponse } from './pod-response.ts';
import { applyIdleLimit, applySpendLimit, requireSpendLimit } from './pod-stop.ts';

export type PodEdits = ReturnType<typeof createPodEdits>;

/** Every method throws ApiError `pod_not_found` for a pod of another account. */
export function createPodEdits(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  /** Queues an immediate sync of this executor. */
  wake(executorId: string): void;
  notebookToken: NotebookTokenOf;
  volumesOfPods: VolumesOfPods;
  checkRegistry: CheckRegistry;
}) {
  const { clock, notebookToken, checkRegistry } = deps;

  /** Runs `change` on the caller's pod in one transaction, then queues a sync of its node. */
  async function onOwn<T>(
    caller: Caller,
    id: string,
    change: (tx: Db, pod: Pod) => Promise<T>,
  ): Promise<T> {
    const { executorId, answer } = await moneyTransaction(deps, async (tx) => {
      const pod = await requireOwnPod(tx, caller.identity.accountId, id, clock.now());
      return { executorId: pod.executor_id, answer: await change(tx, pod) };
    });
    deps.wake(executorId);
    return answer;
  }

  async function rowOf(tx: Db, pod: Pod): Promise<PodListItemResponse> {
    const executor = await findExecutor(tx, pod.executor_id);
    if (executor === undefined) throw new Error(`executor ${pod.executor_id} of a pod is missing`);
    const volume = (await deps.volumesOfPods(tx, [pod])).get(pod.id) ?? null;
    const spent = await spentOn(tx, pod.id, clock.now());
    return podResponse(pod, executor, clock.now(), notebookToken(pod), volume, spent);
  }

  return {
    /** Changes the name and the limits without a restart. */
    update: (caller: Caller, id: string, request: PodUpdateRequest) =>
      onOwn(caller, id, async (tx, pod) => {
        const patch = columnsOf(pod, request, clock.now());
        if (Object.keys(patch).length === 0) throw nothingToChange();
        requireSpendLimit(patch.max_spend_uusd ?? null, rateOfPod(pod));
        const change = { ...patch, updated_at: clock.now() };
        const settled =
          request.max_spend_usd === undefined
            ? null
            : await settleFirst(tx, pod.account_id, clock.now());
        await changeUnlessRemoving(tx, pod, change);
        const { removal_at: removalAt = pod.removal_at } = change;
        await recordRemovalTime(tx, deps, pod, { actor: caller.actor, removalAt });
        if (settled !== null) await applySpendLimit(tx, deps, settled, pod);
        if (request.idle_shutdown_minutes !== undefined) await applyIdleLimit(tx, deps, pod);
        return rowOf(tx, (await findPod(tx, id)) ?? { ...pod, ...change });
      }),

    /** Replaces the container by a container of the changed template. If that fails, the former container returns. */
    async edit(caller: Caller, id: string, changes: UpdateTemplate): Promise<TemplateResponse> {
      await checkRegistry(changes.docker_image);
      return onOwn(caller, id, async (tx, pod) => {
        if (Object.values(changes).every((value) => value === undefined)) throw nothingToChange();
        const snapshot = TemplateResponse.parse(templateOf(pod));
        const used = { templateId: pod.template_id, snapshot };
        const template = await templateForEdit(tx, deps, pod.account_id, used, changes);
        await beginRestart(tx, deps, pod, { actor: caller.actor, kind: 'edit', template });
        return templateResponse(template);
      });
    },

    /** Replaces the container by a container of an existing template, with the checks of a rental. */
    switchTemplate: (caller: Caller, id: string, templateId: string) =>
      onOwn(caller, id, async (tx, pod) => {
        const template = await templateForRent(tx, pod.account_id, templateId, null);
        const request = { actor: caller.actor, kind: 'switch-template', template } as const;
        const changing = await beginRestart(tx, deps, pod, request);
        await markTemplateRented(tx, template, clock.now());
        return rowOf(tx, changing);
      }),
  };
}

function rateOfPod(pod: Pod) {
  return { priceUusdPerGpuHour: pod.price_uusd_per_gpu_hour, gpus: pod.gpu_count };
}

/** Columns for the members that the request contains. Hours count from the pod's creation. */
function columnsOf(pod: Pod, request: PodUpdateRequest, nowMs: number) {
  const { pod_name, max_spend_usd, idle_shutdown_minutes, termination_hours } = request;
  return {
    ...(pod_name === undefined ? {} : { pod_name }),
    ...(max_spend_usd === undefined ? {} : { max_spend_uusd: microOrNull(max_spend_usd) }),
    ...(idle_shutdown_minutes === undefined ? {} : { idle_shutdown_minutes, ...resetIdle(nowMs) }),
    ...(termination_hours === undefined
      ? {}
      : {
          termination_hours,
          removal_at: removalAtOf(pod, termination_hours, nowMs),
        }),
  };
}

function removalAtOf(pod: Pod, hours: number | null, nowMs: number): number | null {
  if (hours === null) return null;
  const removalAt = removalAfter(hours, pod.created_at);
  if (removalAt > nowMs) return removalAt;
  throw new ApiError('ttl_invalid', `The pod is already older than ${hours} hours`, {
    hint: 'Hours count from created_at; DELETE /pods/{id} ends the pod now.',
  });
}

function nothingToChange(): ApiError {
  return new ApiError('bad_request', 'The request contains no member to change');
}
