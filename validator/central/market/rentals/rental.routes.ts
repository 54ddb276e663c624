/** Renting and the legacy un-rent (contract 4.1). */
import type { HttpServer } from '#shared/http/server.ts';
import { answerOnce, type OnceDeps } from '../../platform/idempotency/once.ts';
import { ExecutorParams } from '../executors/executor.schemas.ts';
import { callerOf } from '../pods/caller.ts';
import { PodDeletedResponse } from '../pods/pod.schemas.ts';
import type { Pods } from '../pods/pod.service.ts';
import { RentExecutorRequest, RentExecutorResponse } from './rental.schemas.ts';
import { type RentDeps, rentIn } from './rental.service.ts';

const tags = ['Executors'];
const config = { auth: 'user' } as const;

export type RentalRoutesDeps = RentDeps &
  OnceDeps & {
    pods: Pods;
    wake(executorId: string): void;
  };

/** Registers them. */
export function registerRentalRoutes(api: HttpServer, deps: RentalRoutesDeps): void {
  const { pods } = deps;
  api.post(
    '/executors/:executor_uuid/rent',
    {
      config: { ...config, once: 'rent' },
      schema: {
        tags,
        params: ExecutorParams,
        body: RentExecutorRequest,
        response: { 200: RentExecutorResponse },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const executorId = request.params.executor_uuid;
      const caller = callerOf(request);
      const isRented = await answerOnce(
        deps,
        { request, reply },
        {
          schema: RentExecutorResponse,
          effects: (tx) => rentIn(tx, deps, { ...caller, executorId, body }),
        },
      );
      if (isRented) deps.wake(executorId);
      return reply;
    },
  );
  api.delete(
    '/executors/:executor_uuid/rent',
    { config, schema: { tags, params: ExecutorParams, response: { 200: PodDeletedResponse } } },
    async (request) => ({
      ...(await pods.removeOnly(callerOf(request), request.params.executor_uuid)),
      success: true as const,
    }),
  );
}
