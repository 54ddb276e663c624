/** Health, version and the like on the wire (contract 9.2, 3.2). */
import { z } from 'zod';
import { NaiveTime, queryNumber } from '../wire.ts';

/** Longest answer of GET /sleep (contract 12.25). */
const MAX_SLEEP_S = 30;

export const Health = z
  .object({ status: z.literal('ok'), name: z.string(), version: z.string() })
  .meta({ id: 'Health' });

export const VersionResponse = z
  .object({
    started_at: NaiveTime,
    uptime_seconds: z.number(),
    /** Clients use what is listed here and nothing else. */
    features: z.array(z.string()),
    version: z.string(),
    /** What its commands to gateways are signed with: VALIDATOR_CENTRAL_HOTKEY of a validator. */
    hotkey: z.string(),
  })
  .meta({ id: 'VersionResponse' });

export const SleepParams = z.object({ seconds: queryNumber(z.number().min(0).max(MAX_SLEEP_S)) });
export const SleepResponse = z.object({ slept: z.number() }).meta({ id: 'SleepResponse' });

export const OpenApiDocument = z.looseObject({ openapi: z.string() });
