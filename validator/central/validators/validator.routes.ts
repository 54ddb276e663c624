/** /validator/{validator_hotkey} (contract 11). */
import { z } from 'zod';
import {
  ExecutorHealthCheckRequest,
  ExecutorHealthCheckResponse,
  ExecutorsToCheck,
} from '#shared/central-api/validator-routes.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { validatorOf } from '../auth/identity.ts';
import type { Validators } from './validator.service.ts';

const tags = ['Validators'];
const config = { auth: 'validator' } as const;
const HotkeyParams = z.object({ validator_hotkey: z.string() });

/** Registers them. */
export function registerValidatorRoutes(api: HttpServer, validators: Validators): void {
  api.post(
    '/validator/:validator_hotkey/executors',
    { config, schema: { tags, params: HotkeyParams, response: { 200: ExecutorsToCheck } } },
    () => validators.executorsToCheck(),
  );
  api.post(
    '/validator/:validator_hotkey/executor-health-check',
    {
      config,
      schema: {
        tags,
        params: HotkeyParams,
        body: ExecutorHealthCheckRequest,
        response: { 200: ExecutorHealthCheckResponse },
      },
    },
    (request) => validators.healthCheck(validatorOf(request).hotkey, request.body),
  );
}
