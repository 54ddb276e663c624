/** Requests to the central miner server: `GET` and `PUT {base}/miners/{hotkey}/executors`, with a bearer token. */
import { z } from 'zod';
import { boundedText } from '#shared/http/bounded-text.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
import type { CentralMiner, MinerNode } from '../ports.ts';

export type HttpCentralMinerOptions = {
  /** `http(s)://host:port/path`. */
  baseUrl: string;
  /** Null if the server requires no token. */
  token: string | null;
};

const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 1024 * 1024;
/** Maximum number of nodes of a provider. */
const MAX_NODES = 1_000;
const PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

const WireNode = z.object({
  ip_address: z.string().max(64),
  port: z.int().min(1).max(65_535),
  gpu_type: z.string().trim().min(1).max(64),
  gpu_count: z.int().min(1).max(64),
  price_per_gpu: z.number().min(0).nullish(),
});
const List = z.object({ executors: z.array(WireNode).max(MAX_NODES) });
const Count = z.int().min(0);
const Counts = z.object({ added: Count, updated: Count, removed: Count });

/** Does not follow redirects, so that no other server receives the token. */
export function createHttpCentralMiner(
  { baseUrl, token }: HttpCentralMinerOptions,
  clock: Clock,
): CentralMiner {
  const base = new URL(baseUrl);
  const authorization = token === null ? {} : { Authorization: `Bearer ${token}` };

  async function request<T>(schema: z.ZodType<T>, hotkey: string, sent: RequestInit): Promise<T> {
    try {
      const response = await fetch(`${base.href.replace(/\/+$/, '')}/miners/${hotkey}/executors`, {
        ...sent,
        headers: {
          Accept: 'application/json',
          'Content-Type': 'application/json',
          ...authorization,
        },
        redirect: 'error',
        signal: clock.deadline(TIMEOUT_MS),
      });
      const text = await boundedText(response, MAX_ANSWER_BYTES);
      if (!response.ok) throw new Error(`status ${response.status}`);
      return schema.parse(JSON.parse(text));
    } catch (error) {
      throw new ApiError(
        'upstream_unavailable',
        'Unexpected response from the central miner server',
        {
          hint: 'Try again in a minute. No node was changed.',
          cause: new Error(messageOf(error)),
        },
      );
    }
  }

  return {
    host: base.hostname,
    port: Number(base.port) || (PORTS[base.protocol] ?? 0),

    async list(hotkey) {
      const { executors } = await request(List, hotkey, { method: 'GET' });
      return executors.map((node) => ({
        ipAddress: node.ip_address,
        port: node.port,
        gpuType: node.gpu_type,
        gpuCount: node.gpu_count,
        usdPerGpuHour: node.price_per_gpu ?? null,
      }));
    },

    replace: (hotkey, nodes) =>
      request(Counts, hotkey, {
        method: 'PUT',
        body: JSON.stringify({ executors: nodes.map(wireNode) }),
      }),
  };
}

function wireNode(node: MinerNode): z.input<typeof WireNode> {
  return {
    ip_address: node.ipAddress,
    port: node.port,
    gpu_type: node.gpuType,
    gpu_count: node.gpuCount,
    price_per_gpu: node.usdPerGpuHour,
  };
}
