/**
 * GET /, /version, /sleep/{seconds} and /openapi.json, and /openapi.json of the portal. These routes require no
 * credential.
 */

import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { VERSION } from '#shared/runtime/version.ts';
import type { CentralOptions } from '../central-deps.ts';
import type { Agents } from '../ports.ts';
import { NaiveTime, queryNumber } from '../wire.ts';

const tags = ['System'];
const open = { auth: 'none' } as const;
const probe = { auth: 'none', limit: 'exempt' } as const;
/** Features of this version. Clients read the list to decide which requests they can send. */
const FEATURES = ['rent_by_spec', 'idempotent_rent'];

export function registerPortalDescription(portal: HttpServer): void {
  portal.get(
    '/openapi.json',
    {
      config: open,
      schema: {
        tags: ['Portal'],
        summary: 'Read this document',
        description:
          'Returns the OpenAPI description of the interface. `/docs` at the origin shows it.',
        response: { 200: OpenApiDocument },
      },
    },
    async () => OpenApiDocument.parse(portal.portalDescription()),
  );
}

type SystemDeps = {
  clock: Clock;
  agents: Pick<Agents, 'hotkey' | 'gateway'>;
  /** Ends sleeps when the server stops. */
  stopping: AbortSignal;
  webhookTargets: NonNullable<CentralOptions['webhookTargets']>;
};

export function registerSystemRoutes(
  api: HttpServer,
  { clock, agents, stopping, webhookTargets }: SystemDeps,
): void {
  const startedAt = naiveUtc(clock.now());
  const startedMs = clock.monotonicMs();
  const uptimeSeconds = () => (clock.monotonicMs() - startedMs) / 1000;

  api.get(
    '/',
    {
      config: probe,
      schema: {
        tags,
        summary: 'Check that the API responds',
        description: 'Returns the name and version of the product. It does not query the database.',
        response: { 200: Health },
      },
    },
    async () => ({
      status: 'ok' as const,
      name: 'podwright',
      version: VERSION,
    }),
  );
  api.get(
    '/version',
    {
      config: probe,
      schema: {
        tags,
        summary: 'Read version, features and start time',
        description:
          'Returns the version, the start time, the optional features that clients may use, the hotkeys of the central API and of the validator that agents must trust, and the addresses that webhooks may have.',
        response: { 200: VersionResponse },
      },
    },
    async () => ({
      started_at: startedAt,
      uptime_seconds: uptimeSeconds(),
      features: FEATURES,
      version: VERSION,
      hotkey: agents.hotkey,
      validator_hotkey: agents.gateway.hotkey,
      webhook_targets: webhookTargets,
    }),
  );
  api.get(
    '/sleep/:seconds',
    {
      config: open,
      schema: {
        tags,
        summary: 'Respond after a delay',
        description:
          'Waits and then responds. Use it to test the timeouts of clients and proxies. The wait ends when the client disconnects.',
        params: SleepParams,
        response: { 200: SleepResponse },
      },
    },
    async (request, reply) => {
      const fromMs = clock.monotonicMs();
      const ended = AbortSignal.any([stopping, goneOf(reply)]);
      // The wait ends early if the client disconnects or the server stops. The response contains the actual duration.
      await clock.sleep(request.params.seconds * 1000, ended).catch(() => undefined);
      return { slept: (clock.monotonicMs() - fromMs) / 1000 };
    },
  );
  api.get(
    '/openapi.json',
    {
      config: open,
      schema: {
        tags,
        summary: 'Read this document',
        description: 'Returns the OpenAPI description of the API. `/docs` at the origin shows it.',
        response: { 200: OpenApiDocument },
      },
    },
    async () => OpenApiDocument.parse(api.swagger()),
  );
}

/** Returns a signal that aborts when the client disconnects or the response has been sent. */
function goneOf(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  return gone.signal;
}

/** Maximum duration of GET /sleep, in seconds. */
const MAX_SLEEP_S = 30;

export const Health = z
  .object(
    described(
      { status: z.literal('ok'), name: z.string(), version: z.string() },
      { status: 'Always `ok`.', name: 'Name of the product.', version: 'Version of the product.' },
    ),
  )
  .meta({ id: 'Health' });

export const VersionResponse = z
  .object(
    described(
      {
        started_at: NaiveTime,
        uptime_seconds: z.number(),
        features: z.array(z.string()),
        version: z.string(),
        hotkey: z.string(),
        validator_hotkey: z.string(),
        webhook_targets: z.enum(['public', 'loopback']),
      },
      {
        started_at: 'Time at which the process started (UTC).',
        uptime_seconds: 'Seconds since the start.',
        features: 'Features of this version. Clients may use only listed features.',
        version: 'Version of the product, which differs from the version of the interface.',
        hotkey:
          'ss58 of the hotkey that signs commands to gateways; a validator configures it as VALIDATOR_CENTRAL_HOTKEY.',
        validator_hotkey:
          'ss58 of the validator that relays commands to agents; an agent trusts it with AGENT_TRUSTED_KEYS=<ss58>=validator-control.',
        webhook_targets:
          'Addresses that webhooks may have: `public` for public addresses over https, `loopback` for addresses of the host of the API, over http or https.',
      },
    ),
  )
  .meta({ id: 'VersionResponse' });

export const SleepParams = z.object(
  described(
    { seconds: queryNumber(z.number().min(0).max(MAX_SLEEP_S)) },
    { seconds: 'Seconds to wait before the response, 0 to 30.' },
  ),
);
export const SleepResponse = z
  .object(described({ slept: z.number() }, { slept: 'Seconds that the request waited.' }))
  .meta({ id: 'SleepResponse' });

export const OpenApiDocument = z.looseObject(
  described(
    { openapi: z.string() },
    { openapi: 'Version of OpenAPI. The document has further members, as OpenAPI defines them.' },
  ),
);
