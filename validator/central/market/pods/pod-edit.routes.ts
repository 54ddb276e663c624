/** Routes that change what a pod is (contract 5.2). */
import type { HttpServer } from '#shared/http/server.ts';
import { TemplateResponse } from '../templates/template.schemas.ts';
import { callerOf } from './caller.ts';
import {
  CustomTemplateRequest,
  PodParams,
  PodResponse,
  PodUpdateRequest,
  SwitchTemplatePodRequest,
} from './pod.schemas.ts';
import type { PodEdits } from './pod-edit.service.ts';

const tags = ['Pods'];
const config = { auth: 'user' } as const;
const params = PodParams;

/** Registers them. */
export function registerPodEditRoutes(api: HttpServer, edits: PodEdits): void {
  api.patch(
    '/pods/:id',
    { config, schema: { tags, params, body: PodUpdateRequest, response: { 200: PodResponse } } },
    (request) => edits.update(callerOf(request), request.params.id, request.body),
  );
  api.put(
    '/pods/:id',
    {
      config,
      schema: { tags, params, body: CustomTemplateRequest, response: { 200: TemplateResponse } },
    },
    (request) => edits.edit(callerOf(request), request.params.id, request.body),
  );
  api.put(
    '/pods/:id/switch-template',
    {
      config,
      schema: { tags, params, body: SwitchTemplatePodRequest, response: { 200: PodResponse } },
    },
    (request) =>
      edits.switchTemplate(callerOf(request), request.params.id, request.body.template_id),
  );
}
