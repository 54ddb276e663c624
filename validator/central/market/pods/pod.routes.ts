/** /pods. The log stream is in delivery/streams. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { AccountEvent, EventsQuery } from '../../delivery/events/event.schemas.ts';
import { callerOf, userOf } from '../../platform/identity.ts';
import { Uuid } from '../../platform/wire.ts';
import { TemplateResponse } from '../templates/template.schemas.ts';
import { GpuUtilization, type GpuUtilizations } from './gpu-utilization.ts';
import {
  AddSshKeysRequest,
  CustomTemplateRequest,
  InstallJupyterRequest,
  PodDeletedResponse,
  PodDetailQuery,
  PodDetailResponse,
  PodHistoryQuery,
  PodHistoryResponse,
  PodListItemResponse,
  PodListQuery,
  PodParams,
  PodResponse,
  PodUpdateRequest,
  RebootPodRequest,
  ScheduleRemovalRequest,
  SshKeysAddedResponse,
  SwitchTemplatePodRequest,
} from './pod.schemas.ts';
import type { Pods } from './pod.service.ts';
import type { PodEdits } from './pod-edit.service.ts';

const tags = ['Pods'];
const config = { auth: 'user' } as const;

export type PodRoutesDeps = {
  pods: Pods;
  edits: PodEdits;
  gpuUtilization: GpuUtilizations;
};

export function registerPodRoutes(
  api: HttpServer,
  { pods, edits, gpuUtilization }: PodRoutesDeps,
): void {
  api.get(
    '/pods',
    {
      config,
      schema: { tags, querystring: PodListQuery, response: { 200: z.array(PodListItemResponse) } },
    },
    (request) => pods.list(userOf(request), request.query),
  );
  api.get(
    '/pods/:id',
    {
      config,
      schema: {
        tags,
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
    { config, schema: { tags, params: PodParams, response: { 200: PodDeletedResponse } } },
    async (request) => ({
      ...(await pods.remove(callerOf(request), request.params.id)),
      success: true as const,
    }),
  );
  api.post(
    '/pods/:id/reboot',
    {
      config,
      schema: {
        tags,
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
    { config, schema: { tags, params: PodParams, response: { 200: PodResponse } } },
    (request) => pods.like(callerOf(request), request.params.id),
  );
  api.post(
    '/pods/:id/schedule-removal',
    {
      config,
      schema: {
        tags,
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
    { config, schema: { tags, params: PodParams, response: { 200: PodResponse } } },
    (request) => pods.cancelRemoval(callerOf(request), request.params.id),
  );
  api.get(
    '/pods/:id/events',
    {
      config,
      schema: {
        tags,
        params: PodParams,
        querystring: EventsQuery,
        response: { 200: z.array(AccountEvent) },
      },
    },
    (request) => pods.events(userOf(request), request.params.id, request.query),
  );
  api.patch(
    '/pods/:id',
    {
      config,
      schema: { tags, params: PodParams, body: PodUpdateRequest, response: { 200: PodResponse } },
    },
    (request) => edits.update(callerOf(request), request.params.id, request.body),
  );
  api.put(
    '/pods/:id',
    {
      config,
      schema: {
        tags,
        params: PodParams,
        body: CustomTemplateRequest,
        response: { 200: TemplateResponse },
      },
    },
    (request) => edits.edit(callerOf(request), request.params.id, request.body),
  );
  api.put(
    '/pods/:id/switch-template',
    {
      config,
      schema: {
        tags,
        params: PodParams,
        body: SwitchTemplatePodRequest,
        response: { 200: PodResponse },
      },
    },
    (request) =>
      edits.switchTemplate(callerOf(request), request.params.id, request.body.template_id),
  );
  api.get(
    '/pods/history',
    {
      config,
      schema: {
        tags,
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
      schema: { tags, params: z.object({ pod_id: Uuid }), response: { 200: GpuUtilization } },
    },
    (request) => gpuUtilization(request.params.pod_id),
  );
}
