/** Routes that change the name, the limits and the template of a pod. */
import type { HttpServer } from '#shared/http/server.ts';
import { callerOf } from '../../platform/identity.ts';
import { TemplateResponse } from '../templates/template.schemas.ts';
import { PodParams, PodResponse } from './pod.schemas.ts';
import {
  CustomTemplateRequest,
  POD_UPDATE_FIELD_NAMES,
  PodUpdateRequest,
  SwitchTemplatePodRequest,
} from './pod-change.schemas.ts';
import type { PodEdits } from './pod-edit.service.ts';

const tags = ['Pods'];
const config = { auth: 'user' } as const;

export function registerPodEditRoutes(api: HttpServer, edits: PodEdits): void {
  api.patch(
    '/pods/:id',
    {
      config: { ...config, fieldNames: POD_UPDATE_FIELD_NAMES },
      schema: {
        tags,
        summary: 'Rename a pod or change its limits',
        description:
          'Changes the given members without a restart. Null removes a limit. A misspelt field is rejected, and the error names the field that was probably meant.',
        errors: {
          pod_not_found: 'the account has no such pod',
          bad_request: 'the request contains no member to change',
          ttl_invalid: 'the hours are not between 1 and 720, or the pod is already older',
          pod_state_conflict: 'the pod is being deleted',
        },
        retry: 'Safe: a repeat stores the same values again.',
        params: PodParams,
        body: PodUpdateRequest,
        response: { 200: PodResponse },
      },
    },
    (request) => edits.update(callerOf(request), request.params.id, request.body),
  );
  api.put(
    '/pods/:id',
    {
      config: { ...config, fieldNames: { onlyWithoutKnown: true } },
      schema: {
        tags,
        summary: 'Edit the template of a pod',
        description:
          "Changes the given members of the pod's template and restarts the container. A template of another account is first copied for the caller. Read-only and unknown members are ignored, so that clients may send a whole row.",
        errors: {
          pod_not_found: 'the account has no such pod',
          template_invalid: 'the image, a command, a variable or a volume is malformed',
          pod_state_conflict: 'the state of the pod does not allow a restart',
        },
        retry: 'Safe: a repeat stores the same values; it may restart the container again.',
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
        summary: 'Switch a pod to another template',
        description:
          'Restarts the container with another template. Ports, keys, and the folders that both templates list in `volumes`, are kept.',
        errors: {
          pod_not_found: 'the account has no such pod',
          template_not_found: 'there is no such template, or it is private to another account',
          template_invalid: 'the template cannot be used',
          pod_state_conflict: 'the state of the pod does not allow a restart',
        },
        retry: 'Safe: a repeat ends with the same template; it may restart the container again.',
        params: PodParams,
        body: SwitchTemplatePodRequest,
        response: { 200: PodResponse },
      },
    },
    (request) =>
      edits.switchTemplate(callerOf(request), request.params.id, request.body.template_id),
  );
}
