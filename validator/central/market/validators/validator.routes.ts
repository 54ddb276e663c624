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
/** Path parameters of routes without a signature. Signed routes validate the hotkey with the signature. */
const PublicHotkeyParams = z.object({ validator_hotkey: Hotkey });

export function registerValidatorRoutes(api: HttpServer, validators: Validators): void {
  api.post(
    '/validator/:validator_hotkey/executors',
    {
      config: { ...config, reads: true },
      schema: {
        tags,
        summary: 'List nodes to check',
        description:
          'Returns every node that a validator should check, with the data that the checks need. Validators poll the list about every 20 minutes. The method is POST for compatibility with existing validators; the request changes nothing.',
        errors: {
          forbidden: 'the path names another hotkey than the signature',
          unauthorized: 'the signature is missing, wrong, too old or used before',
        },
        retry: 'Safe: create a new signature for each request.',
        params: HotkeyParams,
        response: { 200: ExecutorsToCheck },
      },
    },
    () => validators.executorsToCheck(),
  );
  api.post(
    '/validator/:validator_hotkey/executor-health-check',
    {
      config: { auth: 'validator-or-account' },
      schema: {
        tags,
        summary: 'Check a node, or record a verdict',
        description:
          'Without `report`, the central API has the node checked and returns the result within 300 seconds. With `report`, it records the validator’s verdict, which decides whether the node can be rented.',
        errors: {
          forbidden: 'the path names another hotkey, or a session sends a report',
          node_not_found: 'there is no node at this address',
          unauthorized: 'the signature is missing, wrong, too old or used before',
        },
        retry:
          'Safe: a repeated verdict has no effect, and an older verdict does not replace a newer one.',
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
        summary: 'Record the weights that a validator set',
        description:
          'Stores the weights with their signature. Unknown members are refused, because all members are signed.',
        errors: {
          unauthorized: 'the weights are not signed by this validator',
          validation_error:
            'the lists differ in length, or `updated_at` is in the future or not newer than the stored weights',
        },
        retry: 'Safe: a repeat is refused with 422, because the time is not newer.',
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
    {
      config: { auth: 'none' },
      schema: {
        tags,
        summary: 'Read the latest weights of a validator',
        description: 'Returns the signed payload, so that anyone can verify it.',
        errors: { not_found: 'the validator set no weights yet' },
        params: PublicHotkeyParams,
        response,
      },
    },
    (request) => weights.latestOf(request.params.validator_hotkey),
  );
  api.get(
    '/latest-set-weights',
    {
      config: { auth: 'none' },
      schema: {
        tags,
        summary: 'Read the newest weights of any validator',
        description: 'Returns the signed payload that was stored last.',
        errors: { not_found: 'no weights were set yet' },
        response,
      },
    },
    () => weights.latest(),
  );
}

/**
 * Registers GET /updater/digest and its alias /watchtower/digest, which return the validator's signed response
 * unchanged.
 */
export function registerUpdaterRoutes(api: HttpServer, digests: SignedDigests): void {
  for (const path of ['/updater/digest', '/watchtower/digest']) {
    api.get(
      path,
      {
        config: { auth: 'none' },
        schema: {
          tags: ['Validators'],
          summary: "Read the signed digest of the agent's release",
          description:
            'Returns the release that agents should run, as the validator signed it. Both paths are the same operation. Agents poll the digest every five minutes.',
          errors: { upstream_unavailable: 'no validator answers, or its registry cannot be read' },
          response: { 200: SignedDigest },
        },
      },
      () => digests.current(),
    );
  }
}
