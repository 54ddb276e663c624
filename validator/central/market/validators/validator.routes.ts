/** Routes of validators (nodes to check, verdicts, weights) and of the release digest that a validator signs. */
import { z } from 'zod';
import {
  LatestSetWeightsRequest,
  LatestSetWeightsResponse,
  SetWeightsAnswer,
} from '#shared/api/central/set-weights.ts';
import {
  ExecutorHealthCheckRequest,
  ExecutorHealthCheckResponse,
  ExecutorsToCheck,
} from '#shared/api/central/validator-routes.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { SignedDigest } from '#shared/updates/update-manifest.ts';
import { validatorOf } from '../../platform/identity.ts';
import type { SetWeights } from './set-weights.service.ts';
import type { SignedDigests } from './signed-digest.ts';
import type { Validators } from './validator.service.ts';

const tags = ['Validators'];
const config = { auth: 'validator' } as const;
const HotkeyParams = z.object({ validator_hotkey: z.string() });
/** For routes without a signature, which would validate the hotkey. */
const PublicHotkeyParams = z.object({ validator_hotkey: Hotkey });

export function registerValidatorRoutes(api: HttpServer, validators: Validators): void {
  api.post(
    '/validator/:validator_hotkey/executors',
    {
      config: { ...config, reads: true },
      schema: { tags, params: HotkeyParams, response: { 200: ExecutorsToCheck } },
    },
    () => validators.executorsToCheck(),
  );
  api.post(
    '/validator/:validator_hotkey/executor-health-check',
    {
      config: { auth: 'validator-or-account' },
      schema: {
        tags,
        params: HotkeyParams,
        body: ExecutorHealthCheckRequest,
        response: { 200: ExecutorHealthCheckResponse },
      },
    },
    (request) => validators.healthCheck(validatorOf(request), request.body),
  );
}

export function registerSetWeightsRoutes(api: HttpServer, weights: SetWeights): void {
  const response = { 200: LatestSetWeightsResponse };
  api.post(
    '/validator/:validator_hotkey/latest-set-weights',
    {
      config: { auth: 'weights' },
      schema: {
        tags,
        params: HotkeyParams,
        body: LatestSetWeightsRequest,
        response: { 200: SetWeightsAnswer },
      },
    },
    (request) =>
      weights.record(validatorOf(request).hotkey, request.body, request.headers.authorization),
  );
  api.get(
    '/validator/:validator_hotkey/latest-set-weights',
    { config: { auth: 'none' }, schema: { tags, params: PublicHotkeyParams, response } },
    (request) => weights.latestOf(request.params.validator_hotkey),
  );
  api.get('/latest-set-weights', { config: { auth: 'none' }, schema: { tags, response } }, () =>
    weights.latest(),
  );
}

/** Registers GET /updater/digest and its alias /watchtower/digest, which return the validator's signed response unchanged. */
export function registerUpdaterRoutes(api: HttpServer, digests: SignedDigests): void {
  for (const path of ['/updater/digest', '/watchtower/digest']) {
    api.get(
      path,
      {
        config: { auth: 'none' },
        schema: { tags: ['Validators'], response: { 200: SignedDigest } },
      },
      () => digests.current(),
    );
  }
}
