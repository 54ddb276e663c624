/** Routes below /operator for pods on nodes that the database does not have, or has in an older generation. */
import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { huidOf } from '../market/executors/executor-response.ts';
import type { Decision, UnknownPods } from '../market/pods/unknown-pods.ts';
import { MAX_REASON_CHARS, requireReason } from '../platform/audit/audit.service.ts';
import type { UnknownPod } from '../platform/database/tables.ts';
import { userOf } from '../platform/identity.ts';
import { PAGE } from '../platform/openapi/field-texts.ts';
import { PageQuery } from '../platform/portal-answer.ts';
import { NaiveTime, queryNumber } from '../platform/wire.ts';

const tags = ['Operator'];
const config = { auth: 'operator' } as const;
const forbidden = "the account does not have the operator's role";
const notFound = 'the node has no such unknown pod';

const UnknownPodResponse = z
  .object(
    described(
      {
        executor_id: z.uuid(),
        executor_huid: z.string(),
        pod_id: z.uuid(),
        kind: z.enum(['missing', 'newer']),
        generation: z.int(),
        image: z.string(),
        gpu_count: z.int(),
        created_at: NaiveTime,
        found_at: NaiveTime,
        remove_requested_at: NaiveTime.nullable(),
      },
      {
        executor_id: 'Id of the node.',
        executor_huid: 'Readable name of the node.',
        pod_id: 'Id of the pod.',
        kind: '`missing`: the database has no such pod on the node; `newer`: the database has an older generation of the pod.',
        generation: 'Generation of the pod on the node.',
        image: 'Image that the node reports; `dockerfile` for an image built on the node.',
        gpu_count: 'Number of GPUs of the pod.',
        created_at: "Time at which the node created the pod (UTC), by the node's clock.",
        found_at: 'Time at which the pod was found (UTC).',
        remove_requested_at:
          'Time at which an operator requested the removal (UTC); null before. The entry ends once the node has removed the pod.',
      },
    ),
  )
  .meta({ id: 'UnknownPod' });

const UnknownPodList = z
  .object(
    described(
      { total: z.int(), pods: z.array(UnknownPodResponse) },
      { total: 'Number of unknown pods.', pods: 'Unknown pods, the oldest finding first.' },
    ),
  )
  .meta({ id: 'UnknownPodList' });

const MAX_LISTED = 1_000;
const UnknownPodQuery = z
  .object(
    described(
      {
        page: PageQuery.shape.page,
        limit: queryNumber(z.int().min(1).max(MAX_LISTED).default(100)),
      },
      { page: PAGE, limit: 'Maximum number of listed pods, 1 to 1000; 100 by default.' },
    ),
  )
  .meta({ example: { page: 1, limit: 20 } });

const UnknownPodParams = z.object(
  described(
    { id: z.uuid(), pod_id: z.uuid() },
    { id: 'Id of the node.', pod_id: 'Id of the pod on the node.' },
  ),
);

const DecideUnknownPod = z
  .object(
    described(
      { reason: z.string().min(1).max(MAX_REASON_CHARS) },
      { reason: 'Reason for the decision, 1 to 500 characters; the audit entry contains it.' },
    ),
  )
  .meta({ example: { reason: 'the database was restored from the copy of 06:00' } });

export function registerUnknownPods(api: HttpServer, unknownPods: UnknownPods): void {
  api.get(
    '/operator/unknown-pods',
    {
      config,
      schema: {
        tags,
        summary: 'List unknown pods',
        description:
          'Returns pods that nodes run and the database does not have, or has in an older generation: the database is an old copy. Such a pod stays as it is, and its node receives no new rentals, until an operator decides.',
        errors: { forbidden },
        querystring: UnknownPodQuery,
        response: { 200: UnknownPodList },
      },
    },
    async ({ query }) => ({
      total: await unknownPods.count(),
      pods: (await unknownPods.list(query)).map(responseOf),
    }),
  );
  api.post(
    '/operator/executors/:id/unknown-pods/:pod_id/adopt',
    {
      config,
      schema: {
        tags,
        summary: 'Adopt an unknown pod',
        description:
          'Accepts the generation on the node as the newest generation of a pod that the database has. The pod runs on; its next change replaces its container according to the database. An audit entry records the reason.',
        errors: {
          forbidden,
          not_found: notFound,
          conflict: 'the database does not have the pod, and so neither its account nor its price',
        },
        retry: 'Safe: a repeated request returns 404, because the pod is no longer unknown.',
        params: UnknownPodParams,
        body: DecideUnknownPod,
        response: { 200: UnknownPodResponse },
      },
    },
    async (request) => responseOf(await unknownPods.adopt(decisionOf(request))),
  );
  api.post(
    '/operator/executors/:id/unknown-pods/:pod_id/remove',
    {
      config,
      schema: {
        tags,
        summary: 'Remove an unknown pod',
        description:
          'Removes the pod with its data from the node. A pod that the database has is removed like a deleted pod. An audit entry records the reason.',
        errors: { forbidden, not_found: notFound },
        retry:
          'Safe: a repeated request changes nothing, except that it writes another audit entry.',
        params: UnknownPodParams,
        body: DecideUnknownPod,
        response: { 200: UnknownPodResponse },
      },
    },
    async (request) => responseOf(await unknownPods.remove(decisionOf(request))),
  );
}

type Request = Parameters<typeof userOf>[0] & {
  params: z.output<typeof UnknownPodParams>;
  body: z.output<typeof DecideUnknownPod>;
};

function decisionOf(request: Request): Decision {
  const { id: executorId, pod_id: podId } = request.params;
  const reason = requireReason(request.body.reason);
  return { executorId, podId, reason, operator: userOf(request).accountId };
}

function responseOf({ created_at, found_at, remove_requested_at, ...pod }: UnknownPod) {
  return {
    ...pod,
    executor_huid: huidOf(pod.executor_id),
    created_at: naiveUtc(created_at),
    found_at: naiveUtc(found_at),
    remove_requested_at: remove_requested_at === null ? null : naiveUtc(remove_requested_at),
  };
}
