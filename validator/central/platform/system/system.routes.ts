/** GET /, /version, /sleep/{seconds} and /openapi.json, and /openapi.json of the portal. They need no credential. */
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { VERSION } from '#shared/runtime/version.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import { NaiveTime, queryNumber } from '../wire.ts';

const tags = ['System'];
const open = { auth: 'none' } as const;
const probe = { auth: 'none', limit: 'exempt' } as const;
/** Features of this version. Clients read them to decide which requests they can send. */
const FEATURES = ['rent_by_spec', 'idempotent_rent'];

/** Registers the description of the portal. */
export function registerPortalDescription(portal: HttpServer): void {
  portal.get(
    '/openapi.json',
    { config: open, schema: { tags: ['Portal'], response: { 200: OpenApiDocument } } },
    async () => OpenApiDocument.parse(portal.portalDescription()),
  );
}

/** `hotkey` signs commands to gateways; `stopping` ends sleeps when the server stops. */
export function registerSystemRoutes(
  api: HttpServer,
  { clock, hotkey, stopping }: { clock: Clock; hotkey: Hotkey; stopping: AbortSignal },
): void {
  const startedAt = naiveUtc(clock.now());
  const startedMs = clock.monotonicMs();
  const uptimeSeconds = () => (clock.monotonicMs() - startedMs) / 1000;

  api.get('/', { config: probe, schema: { tags, response: { 200: Health } } }, async () => ({
    status: 'ok' as const,
    name: 'podwright',
    version: VERSION,
  }));
  api.get(
    '/version',
    { config: probe, schema: { tags, response: { 200: VersionResponse } } },
    async () => ({
      started_at: startedAt,
      uptime_seconds: uptimeSeconds(),
      features: FEATURES,
      version: VERSION,
      hotkey,
    }),
  );
  api.get(
    '/sleep/:seconds',
    { config: open, schema: { tags, params: SleepParams, response: { 200: SleepResponse } } },
    async (request, reply) => {
      const fromMs = clock.monotonicMs();
      const ended = AbortSignal.any([stopping, goneOf(reply)]);
      // Ends early if the client leaves or the server stops; the answer contains the actual duration.
      await clock.sleep(request.params.seconds * 1000, ended).catch(() => undefined);
      return { slept: (clock.monotonicMs() - fromMs) / 1000 };
    },
  );
  api.get(
    '/openapi.json',
    { config: open, schema: { tags, response: { 200: OpenApiDocument } } },
    async () => OpenApiDocument.parse(api.swagger()),
  );
}

/** Returns a signal that aborts when the client has left or the response has been sent. */
function goneOf(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  return gone.signal;
}

/** Maximum duration of GET /sleep, in seconds. */
const MAX_SLEEP_S = 30;

export const Health = z
  .object({ status: z.literal('ok'), name: z.string(), version: z.string() })
  .meta({ id: 'Health' });

export const VersionResponse = z
  .object({
    started_at: NaiveTime,
    uptime_seconds: z.number(),
    /** Clients may use only the features that are listed here. */
    features: z.array(z.string()),
    version: z.string(),
    /** Hotkey that signs commands to gateways; a validator configures it as VALIDATOR_CENTRAL_HOTKEY. */
    hotkey: z.string(),
  })
  .meta({ id: 'VersionResponse' });

export const SleepParams = z.object({ seconds: queryNumber(z.number().min(0).max(MAX_SLEEP_S)) });
export const SleepResponse = z.object({ slept: z.number() }).meta({ id: 'SleepResponse' });

export const OpenApiDocument = z.looseObject({ openapi: z.string() });
