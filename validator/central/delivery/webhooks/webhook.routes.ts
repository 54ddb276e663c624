/** Routes of webhooks, their secrets and their deliveries. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { answerOnce, type OnceDeps } from '../../platform/idempotency/once.ts';
import { userOf } from '../../platform/identity.ts';
import { IdParams } from '../../platform/wire.ts';
import type { Deliveries } from './delivery.service.ts';
import {
  CreateWebhook,
  DeliveriesQuery,
  DeliveryParams,
  ReplayWebhook,
  UpdateWebhook,
  Webhook,
  WebhookDelivery,
  WebhookWithSecret,
} from './webhook.schemas.ts';
import type { Webhooks } from './webhook.service.ts';

const tags = ['Webhooks'];
const config = { auth: 'user' } as const;

export function registerWebhookRoutes(
  api: HttpServer,
  deps: OnceDeps & { webhooks: Webhooks; deliveries: Deliveries },
): void {
  const { webhooks, deliveries } = deps;
  api.get(
    '/webhooks',
    {
      config,
      schema: {
        tags,
        summary: 'List webhooks',
        description: "Returns the account's webhooks, without their secrets.",
        response: { 200: z.array(Webhook) },
      },
    },
    (request) => webhooks.list(userOf(request)),
  );
  api.post(
    '/webhooks',
    {
      config: { ...config, once: 'webhook' },
      schema: {
        tags,
        summary: 'Create a webhook',
        description:
          'Creates a webhook that receives events from now on, signed as Standard Webhooks describes. Only this answer contains the secret.',
        errors: {
          validation_error: 'the address is not https, or not public',
          bad_request: 'the account has too many webhooks',
        },
        body: CreateWebhook,
        response: { 201: WebhookWithSecret },
      },
    },
    async (request, reply) => {
      const caller = userOf(request);
      const effects = await webhooks.creation(caller, request.body);
      await answerOnce(
        deps,
        { request, reply },
        {
          schema: WebhookWithSecret,
          status: 201,
          effects,
          atRest: webhooks.answersOf(caller.accountId),
        },
      );
      return reply;
    },
  );
  api.get(
    '/webhooks/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Read a webhook',
        description: 'Returns one webhook with the state of its deliveries.',
        errors: { not_found: 'the account has no such webhook' },
        params: IdParams,
        response: { 200: Webhook },
      },
    },
    (request) => webhooks.get(userOf(request), request.params.id),
  );
  api.patch(
    '/webhooks/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Change a webhook',
        description:
          'Changes the given members. A new address, or `enabled: true`, sends the waiting event at once.',
        errors: {
          not_found: 'the account has no such webhook',
          validation_error: 'the address is not https, or not public',
        },
        retry: 'Safe: a repeat stores the same values again.',
        params: IdParams,
        body: UpdateWebhook,
        response: { 200: Webhook },
      },
    },
    (request) => webhooks.update(userOf(request), request.params.id, request.body),
  );
  api.delete(
    '/webhooks/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Delete a webhook',
        description: 'Deletes the webhook and returns its last state. Waiting events are not sent.',
        errors: { not_found: 'the account has no such webhook' },
        retry: 'Safe: a repeat returns 404 and changes nothing.',
        params: IdParams,
        response: { 200: Webhook },
      },
    },
    (request) => webhooks.remove(userOf(request), request.params.id),
  );
  api.post(
    '/webhooks/:id/rotate-secret',
    {
      config: { ...config, once: 'webhook-rotate-secret' },
      schema: {
        tags,
        summary: 'Replace the secret of a webhook',
        description:
          'Creates a new secret and returns it. For a day deliveries are signed with both secrets, so that receivers can be reconfigured.',
        errors: { not_found: 'the account has no such webhook' },
        params: IdParams,
        response: { 200: WebhookWithSecret },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const caller = userOf(request);
      await answerOnce(
        deps,
        { request, reply },
        {
          schema: WebhookWithSecret,
          effects: (tx) => webhooks.rotateSecret(tx, caller, id),
          atRest: webhooks.answersOf(id),
        },
      );
      return reply;
    },
  );
  api.post(
    '/webhooks/:id/replay',
    {
      config,
      schema: {
        tags,
        summary: 'Deliver all events since a time again',
        description:
          'Sends every event since the given time again, in order, including delivered events. Receivers recognise a repeat by the id of the event.',
        errors: {
          not_found: 'the account has no such webhook',
          bad_request: 'no event happened since the given time',
        },
        retry: 'A repeat sends the events once more.',
        params: IdParams,
        body: ReplayWebhook,
        response: { 200: Webhook },
      },
    },
    (request) => webhooks.replay(userOf(request), request.params.id, request.body),
  );
  api.get(
    '/webhooks/:id/deliveries',
    {
      config,
      schema: {
        tags,
        summary: 'List deliveries of a webhook',
        description: 'Returns the deliveries, newest first.',
        errors: { not_found: 'the account has no such webhook' },
        params: IdParams,
        querystring: DeliveriesQuery,
        response: { 200: z.array(WebhookDelivery) },
      },
    },
    (request) => deliveries.list(userOf(request), request.params.id, request.query),
  );
  api.post(
    '/webhooks/:id/deliveries/:delivery_id/replay',
    {
      config,
      schema: {
        tags,
        summary: 'Send one event again',
        description:
          'Sends the event of this delivery again, whatever the outcome of the delivery was.',
        errors: {
          not_found: 'the account has no such webhook, or the webhook has no such delivery',
        },
        retry: 'A repeat sends the event once more.',
        params: DeliveryParams,
        response: { 200: WebhookDelivery },
      },
    },
    (request) => {
      const { id, delivery_id: deliveryId } = request.params;
      return deliveries.replay(userOf(request), id, deliveryId);
    },
  );
}
