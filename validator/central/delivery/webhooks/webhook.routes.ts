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
    { config, schema: { tags, response: { 200: z.array(Webhook) } } },
    (request) => webhooks.list(userOf(request)),
  );
  api.post(
    '/webhooks',
    { config, schema: { tags, body: CreateWebhook, response: { 201: WebhookWithSecret } } },
    async (request, reply) =>
      reply.status(201).send(await webhooks.create(userOf(request), request.body)),
  );
  api.get(
    '/webhooks/:id',
    { config, schema: { tags, params: IdParams, response: { 200: Webhook } } },
    (request) => webhooks.get(userOf(request), request.params.id),
  );
  api.patch(
    '/webhooks/:id',
    { config, schema: { tags, params: IdParams, body: UpdateWebhook, response: { 200: Webhook } } },
    (request) => webhooks.update(userOf(request), request.params.id, request.body),
  );
  api.delete(
    '/webhooks/:id',
    { config, schema: { tags, params: IdParams, response: { 200: Webhook } } },
    (request) => webhooks.remove(userOf(request), request.params.id),
  );
  api.post(
    '/webhooks/:id/rotate-secret',
    {
      config: { ...config, once: 'webhook-rotate-secret' },
      schema: { tags, params: IdParams, response: { 200: WebhookWithSecret } },
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
    { config, schema: { tags, params: IdParams, body: ReplayWebhook, response: { 200: Webhook } } },
    (request) => webhooks.replay(userOf(request), request.params.id, request.body),
  );
  api.get(
    '/webhooks/:id/deliveries',
    {
      config,
      schema: {
        tags,
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
      schema: { tags, params: DeliveryParams, response: { 200: WebhookDelivery } },
    },
    (request) => {
      const { id, delivery_id: deliveryId } = request.params;
      return deliveries.replay(userOf(request), id, deliveryId);
    },
  );
}
