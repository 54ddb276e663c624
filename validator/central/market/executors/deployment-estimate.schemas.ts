/** Estimates of the time until a pod runs, and the suitable image for a GPU. */
import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { EXAMPLE_IDS } from '../../platform/openapi/example-ids.ts';
import { Uuid } from '../../platform/wire.ts';
import { ETA_BASES } from './launch-estimate.ts';

export const DefaultDockerImageQuery = z
  .object(
    described(
      { gpu_model: z.string().min(1).max(200), driver_version: z.string().max(50).optional() },
      {
        gpu_model: 'Short type or full name of the GPU.',
        driver_version:
          'Version of the GPU driver. Optional, because the answer does not depend on the version.',
      },
    ),
  )
  .meta({ example: { gpu_model: 'NVIDIA H100 80GB HBM3', driver_version: '570.86.15' } });
export const DefaultDockerImage = z
  .object(
    described(
      {
        docker_image: z.string(),
        docker_image_tag: z.string(),
        docker_image_size: z.int().nullable(),
        docker_image_digest: z.string().nullable(),
      },
      {
        docker_image: 'Image without its tag.',
        docker_image_tag: 'Tag of the image.',
        docker_image_size: 'Compressed size in bytes; null if unknown.',
        docker_image_digest: 'Digest of the image (`sha256:…`); null if unknown.',
      },
    ),
  )
  .meta({ id: 'DefaultDockerImage' });
export type DefaultDockerImage = z.output<typeof DefaultDockerImage>;

export const DeploymentEstimateQuery = z
  .object(
    described(
      { template_id: Uuid, executor_id: Uuid },
      { template_id: 'Id of the template.', executor_id: 'Id of the node.' },
    ),
  )
  .meta({ example: { template_id: EXAMPLE_IDS.template, executor_id: EXAMPLE_IDS.node } });
export type DeploymentEstimateQuery = z.output<typeof DeploymentEstimateQuery>;

export const DeploymentEstimateResponse = z
  .object(
    described(
      {
        estimated_seconds: z.number(),
        eta_basis: z.enum(ETA_BASES),
        is_slow_machine: z.boolean(),
        warning_message: z.string().nullable(),
        is_cached_template: z.boolean(),
        docker_image_size: z.int().nullable(),
        required_balance_usd: z.number(),
        price_per_hour: z.number(),
      },
      {
        estimated_seconds: 'Expected seconds from the rental until the pod runs.',
        eta_basis:
          'Basis of the estimate: earlier launches, the measured pull speed, or assumed values.',
        is_slow_machine: 'True if the node is expected to be much slower than usual.',
        warning_message: 'Warning for the renter; null for none.',
        is_cached_template: 'True if the node has the image.',
        docker_image_size: 'Compressed size of the image in bytes; null if unknown.',
        required_balance_usd: 'Balance in USD that a rental of the whole node requires.',
        price_per_hour: 'USD per hour for the whole node.',
      },
    ),
  )
  .meta({ id: 'DeploymentEstimateResponse' });
export type DeploymentEstimateResponse = z.output<typeof DeploymentEstimateResponse>;
