/** Typed client of the public routes that a renter uses. Sends only what every renter sends. */
import { z } from 'zod';
import { CallRefused, callJson } from '#shared/http/json-call.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { RentBody } from './rental.plan.ts';

const Count = z.int().min(0).max(1_000_000);
const Kib = z.number().min(0).max(1e15);
const Text = z.string().max(1_000);

/** A node that can be rented now. */
const FreeNode = z.object({
  id: z.uuid(),
  price_per_gpu: z.number().min(0).max(1_000_000),
  gpu_count: Count,
  available_gpu_count: Count,
  /** Null if only the whole node can be rented. */
  min_gpu_count_for_rental: Count.nullable(),
});
export type FreeNode = z.output<typeof FreeNode>;

/** `user_id` is null for the market's own templates. */
const Template = z.object({
  id: z.uuid(),
  startup_commands: z.string(),
  user_id: z.string().nullable(),
});
export type Template = z.output<typeof Template>;

const RentedPod = z.object({
  id: z.uuid(),
  status: Text,
  ssh_connect_cmd: Text.nullable(),
  ssh_host_key: z.string().max(20_000).nullable(),
  gpu_name: Text,
  gpu_count: z.string().regex(/^\d{1,4}$/),
  cpu_count: Count,
  ram_total: Kib,
  executor: z.object({
    gpu_count: Count,
    simulated: z.boolean(),
    specs: z.object({
      gpu: z.object({ details: z.array(z.object({ capacity: Kib })).max(1_024) }),
      hard_disk: z.object({ free: Kib }),
    }),
  }),
});
export type RentedPod = z.output<typeof RentedPod>;

export type RenterClient = ReturnType<typeof createRenterClient>;
export type RentRequest = RentBody & { user_public_key: string };

/** Codes with which the central API reports that the pod has ended. */
const ENDED = ['pod_not_found', 'pod_state_conflict'];
const Anything = z.unknown();

export function createRenterClient(options: { baseUrl: string; apiKey: string; clock: Clock }) {
  const { baseUrl, apiKey, clock } = options;
  const headers = { 'x-api-key': apiKey };

  function call<T>(
    schema: z.ZodType<T>,
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    sent: { body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<T> {
    const all = { ...headers, ...sent.headers };
    return callJson(schema, { method, url: `${baseUrl}${path}`, ...sent, headers: all }, clock);
  }

  return {
    freeNodes: () => call(z.array(FreeNode), 'GET', '/executors?view=summary'),
    templates: () => call(z.array(Template), 'GET', '/templates'),
    /** A repeated request with the same key returns the same pod. */
    rent: (executorId: string, body: RentRequest, idempotencyKey: string) =>
      call(RentedPod, 'POST', `/executors/${executorId}/rent`, {
        body,
        headers: { 'idempotency-key': idempotencyKey },
      }),
    pod: (podId: string) => call(RentedPod, 'GET', `/pods/${podId}`),
    /** Ends the rental; resolves also if it has ended already. */
    async end(podId: string): Promise<void> {
      try {
        await call(Anything, 'DELETE', `/pods/${podId}`);
      } catch (error) {
        if (!(error instanceof CallRefused)) throw error;
        if (!ENDED.includes(error.problem?.code ?? '')) throw error;
      }
    },
  };
}
