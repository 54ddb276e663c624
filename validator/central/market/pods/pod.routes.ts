/** /pods. The log stream is in delivery/streams. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { AccountEvent, EventsQuery } from '../../delivery/events/event.schemas.ts';
import { callerOf, userOf } from '../../platform/identity.ts';
import { Uuid } from '../../platform/wire.ts';
import { GpuUtilization, type GpuUtilizations } from './gpu-utilization.ts';
import {
  PodDeletedResponse,
  PodDetailQuery,
  PodDetailResponse,
  PodHistoryQuery,
  PodHistoryResponse,
  PodListItemResponse,
  PodListQuery,
  PodParams,
  PodResponse,
  SshKeysAddedResponse,
} from './pod.schemas.ts';
import type { Pods } from './pod.service.ts';
import {
  AddSshKeysRequest,
  InstallJupyterRequest,
  RebootPodRequest,
  ScheduleRemovalRequest,
} from './pod-change.schemas.ts';

const tags = ['Pods'];
const config = { auth: 'user' } as const;

export type PodRoutesDeps = { pods: Pods; gpuUtilization: GpuUtilizations };

export function registerPodRoutes(api: HttpServer, { pods, gpuUtilization }: PodRoutesDeps): void {
  api.get(
    '/pods',
    {
      config,
      schema: {
        tags,
        summary: 'List pods',
        description:
          "Returns the account's live pods, including failed pods until they are deleted (a failed creation for 180 seconds). Deleted pods are in `GET /pods/history`.",
        querystring: PodListQuery,
        response: { 200: z.array(PodListItemResponse) },
      },
    },
    (request) => pods.list(userOf(request), request.query),
  );
  api.get(
    '/pods/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Read a pod',
        description:
          'Returns one pod with its last event, its backup schedule and messages of the node. After a deletion the 404 has `deleted_at` and `reason_code` in `details`.',
        errors: {
          pod_not_found:
            'the account has no such pod, or it was deleted and `include_deleted` is not set',
        },
        params: PodParams,
        querystring: PodDetailQuery,
        response: { 200: PodDetailResponse },
      },
    },
    (request) =>
      pods.get(userOf(request), request.params.id, request.query.include_deleted ?? false),
  );
  api.delete(
    '/pods/:id',
    {
      config: { ...config, urgent: true },
      schema: {
        tags,
        summary: 'Delete a pod',
        description:
          'Ends the pod and its charges. Files outside the pod’s volume and backups are lost; the data of a volume is saved first. The status is DELETING until the node confirms.',
        errors: {
          pod_not_found: 'the account has no such pod',
          pod_state_conflict: 'the pod is already being deleted',
        },
        retry: 'Safe: a repeat is refused and changes nothing.',
        params: PodParams,
        response: { 200: PodDeletedResponse },
      },
    },
    async (request) => ({
      ...(await pods.remove(callerOf(request), request.params.id)),
      success: true as const,
    }),
  );
  api.post(
    '/pods/:id/reboot',
    {
      // If a misspelt volume_id were ignored, the container would be replaced without the volume.
      config: { ...config, fieldNames: {} },
      schema: {
        tags,
        summary: 'Restart a pod',
        description:
          "Restarts the container and keeps its files. With a `volume_id` that the pod does not have, or if the account has changed the pod's template, a new container replaces the container. Then ports, keys and the folders of the template's `volumes` are kept, and other files are deleted.",
        errors: {
          pod_not_found: 'the account has no such pod',
          pod_state_conflict: 'the state of the pod does not allow a restart',
          bad_request: 'the pod has another volume',
          volume_not_found: 'no volume has this id',
          forbidden: 'the volume belongs to another account',
          conflict: 'another pod has the volume, or another node is saving it',
        },
        retry: 'A repeat while the pod restarts is refused; a later repeat restarts the pod again.',
        params: PodParams,
        body: RebootPodRequest.nullish(),
        response: { 200: PodResponse },
      },
    },
    (request) => pods.reboot(callerOf(request), request.params.id, request.body?.volume_id ?? null),
  );
  api.post(
    '/pods/:id/multiple-ssh-keys',
    {
      config,
      schema: {
        tags,
        summary: 'Add SSH keys to a pod',
        description:
          'Adds keys without a restart. Keys that the pod already has are counted and left unchanged.',
        errors: {
          pod_not_found: 'the account has no such pod',
          pod_state_conflict: 'the pod is being deleted',
          bad_request: 'the pod has too many keys',
        },
        retry: 'Safe: a repeat adds nothing.',
        params: PodParams,
        body: AddSshKeysRequest,
        response: { 200: SshKeysAddedResponse },
      },
    },
    (request) => pods.addSshKeys(callerOf(request), request.params.id, request.body),
  );
  api.post(
    '/pods/:id/install-jupyter',
    {
      config,
      schema: {
        tags,
        summary: 'Install a notebook server in a pod',
        description:
          'Installs and starts a notebook server. Poll the pod for `jupyter_installation_status`; the installation takes about two minutes.',
        errors: {
          pod_not_found: 'the account has no such pod',
          pod_state_conflict: 'the pod is not running',
          bad_request: 'the port has no external port',
        },
        retry: 'Safe: a repeat starts the installation again.',
        params: PodParams,
        body: InstallJupyterRequest,
        response: { 200: PodResponse },
      },
    },
    (request) =>
      pods.installJupyter(callerOf(request), request.params.id, request.body.jupyter_internal_port),
  );
  api.post(
    '/pods/:id/like',
    {
      config,
      schema: {
        tags,
        summary: 'Mark or unmark a pod as a favorite',
        description: 'Toggles `is_favorite`.',
        errors: { pod_not_found: 'the account has no such pod' },
        retry: 'Not safe: a repeat reverts the mark. Read the pod first.',
        params: PodParams,
        response: { 200: PodResponse },
      },
    },
    (request) => pods.like(callerOf(request), request.params.id),
  );
  api.post(
    '/pods/:id/schedule-removal',
    {
      config,
      schema: {
        tags,
        summary: 'Schedule the removal of a pod',
        description:
          'Removes the pod at the given time, and sends warnings before the removal. A later request replaces the time.',
        errors: {
          pod_not_found: 'the account has no such pod',
          ttl_invalid: 'the time is not 1 to 720 hours ahead',
          pod_state_conflict: 'the pod is being deleted',
        },
        retry: 'Safe: a repeat stores the same time again.',
        params: PodParams,
        body: ScheduleRemovalRequest,
        response: { 200: PodResponse },
      },
    },
    (request) =>
      pods.scheduleRemoval(callerOf(request), request.params.id, request.body.removal_scheduled_at),
  );
  api.delete(
    '/pods/:id/schedule-removal',
    {
      config,
      schema: {
        tags,
        summary: 'Cancel the scheduled removal of a pod',
        description: 'Cancels the removal.',
        errors: {
          pod_not_found: 'the account has no such pod',
          pod_state_conflict: 'no removal is scheduled',
        },
        retry: 'Safe: a repeat is refused and changes nothing.',
        params: PodParams,
        response: { 200: PodResponse },
      },
    },
    (request) => pods.cancelRemoval(callerOf(request), request.params.id),
  );
  api.get(
    '/pods/:id/events',
    {
      config,
      schema: {
        tags,
        summary: 'List events of a pod',
        description:
          'Returns the events of one pod, oldest first, even after the removal of the pod.',
        errors: { pod_not_found: 'the account never had such a pod' },
        params: PodParams,
        querystring: EventsQuery,
        response: { 200: z.array(AccountEvent) },
      },
    },
    (request) => pods.events(userOf(request), request.params.id, request.query),
  );
  api.get(
    '/pods/history',
    {
      config,
      schema: {
        tags,
        summary: 'List deleted pods',
        description: "Returns the account's deleted pods, newest first.",
        querystring: PodHistoryQuery,
        response: { 200: PodHistoryResponse },
      },
    },
    (request) => pods.history(userOf(request), request.query),
  );
  api.get(
    '/pods/:pod_id/gpu-utilization',
    {
      config: { auth: 'none' },
      schema: {
        tags,
        summary: 'Read the GPU load of a pod',
        description:
          "Returns the last measurement of the pod's GPUs and a short history. Any client that has the pod's id may read the measurement.",
        errors: {
          pod_not_found: 'there is no such pod, or it has ended',
          upstream_unavailable: 'the node does not answer and has never answered',
        },
        params: z.object({ pod_id: Uuid }),
        response: { 200: GpuUtilization },
      },
    },
    (request) => gpuUtilization(request.params.pod_id),
  );
}
