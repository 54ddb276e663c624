/** GET /pods/{pod_id}/gpu-utilization (contract 3.2); open, as the specification has it. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { Uuid } from '../../platform/wire.ts';
import { GpuUtilization } from './gpu-utilization.schemas.ts';
import type { GpuUtilizations } from './gpu-utilization.ts';

const Params = z.object({ pod_id: Uuid });

/** Registers it. */
export function registerGpuUtilization(api: HttpServer, utilizationOf: GpuUtilizations): void {
  api.get(
    '/pods/:pod_id/gpu-utilization',
    {
      config: { auth: 'none' },
      schema: { tags: ['Pods'], params: Params, response: { 200: GpuUtilization } },
    },
    (request) => utilizationOf(request.params.pod_id),
  );
}
