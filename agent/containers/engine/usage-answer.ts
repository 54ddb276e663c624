/** What the engine tells of a container's use of its host, and how it becomes the port's type. */
import { z } from 'zod';
import type { ContainerUsage } from './engine.ts';

const BlockIoEntry = z.object({ op: z.string(), value: z.number() });

/** Of a container that does not run, the engine answers with empty figures. */
export const ContainerUsageAnswer = z
  .object({
    cpu_stats: z.object({ cpu_usage: z.object({ total_usage: z.number().default(0) }) }),
    memory_stats: z
      .object({ usage: z.number().optional(), stats: z.record(z.string(), z.number()).nullish() })
      .default({}),
    networks: z
      .record(z.string(), z.object({ rx_bytes: z.number(), tx_bytes: z.number() }))
      .nullish(),
    blkio_stats: z
      .object({ io_service_bytes_recursive: z.array(BlockIoEntry).nullish() })
      .nullish(),
    pids_stats: z.object({ current: z.number().optional() }).nullish(),
  })
  .transform(({ cpu_stats, memory_stats, networks, ...rest }): ContainerUsage | null => {
    const { usage, stats = null } = memory_stats;
    if (usage === undefined) return null;
    // Of cgroup v1 and v2; as the engine's own tool shows it.
    const files = stats?.['total_inactive_file'] ?? stats?.['inactive_file'] ?? 0;
    const blockIo = rest.blkio_stats?.io_service_bytes_recursive ?? null;
    return {
      cpuNanos: cpu_stats.cpu_usage.total_usage,
      memoryBytes: Math.max(0, usage - files),
      memoryWithFilesBytes: usage,
      residentBytes: stats?.['total_rss'] ?? stats?.['anon'] ?? null,
      cacheBytes: stats?.['total_cache'] ?? stats?.['file'] ?? null,
      network: trafficOf(Object.values(networks ?? {})),
      blockIo:
        blockIo === null
          ? null
          : { readBytes: bytesOf(blockIo, 'read'), writtenBytes: bytesOf(blockIo, 'write') },
      tasks: rest.pids_stats?.current ?? null,
    };
  });

function trafficOf(
  interfaces: readonly { rx_bytes: number; tx_bytes: number }[],
): ContainerUsage['network'] {
  if (interfaces.length === 0) return null;
  return {
    receivedBytes: interfaces.reduce((sum, { rx_bytes }) => sum + rx_bytes, 0),
    sentBytes: interfaces.reduce((sum, { tx_bytes }) => sum + tx_bytes, 0),
  };
}

/** Older engines write the names with a capital. */
function bytesOf(entries: readonly z.output<typeof BlockIoEntry>[], op: 'read' | 'write'): number {
  const ours = entries.filter((entry) => entry.op.toLowerCase() === op);
  return ours.reduce((sum, { value }) => sum + value, 0);
}
