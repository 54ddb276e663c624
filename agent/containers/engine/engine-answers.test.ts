/** Responses of the engine with cgroup v1 and v2. */
import { expect, it } from 'vitest';
import { ContainerUsageAnswer } from './engine-answers.ts';

const CPU = { cpu_stats: { cpu_usage: { total_usage: 5_000 } } };
const NETWORKS = { eth0: { rx_bytes: 1, tx_bytes: 2 }, eth1: { rx_bytes: 10, tx_bytes: 20 } };

it('reads figures of cgroup v1 and v2', () => {
  const v1 = {
    ...CPU,
    networks: NETWORKS,
    pids_stats: { current: 3, limit: 64 },
    memory_stats: {
      usage: 9_000,
      stats: { total_inactive_file: 4_000, total_rss: 1_000, total_cache: 6_000, rss: 1 },
    },
    blkio_stats: {
      io_service_bytes_recursive: [
        { major: 8, minor: 0, op: 'Read', value: 70 },
        { major: 8, minor: 0, op: 'Write', value: 80 },
        { major: 8, minor: 16, op: 'Read', value: 5 },
        { major: 8, minor: 0, op: 'Total', value: 150 },
      ],
    },
  };
  const figures = {
    cpuNanos: 5_000,
    memoryBytes: 5_000,
    memoryWithFilesBytes: 9_000,
    residentBytes: 1_000,
    cacheBytes: 6_000,
    tasks: 3,
    network: { receivedBytes: 11, sentBytes: 22 },
    blockIo: { readBytes: 75, writtenBytes: 80 },
  };
  expect(ContainerUsageAnswer.parse(v1)).toEqual(figures);
  const v2 = {
    ...v1,
    memory_stats: { usage: 9_000, stats: { inactive_file: 4_000, anon: 1_000, file: 6_000 } },
    blkio_stats: {
      io_service_bytes_recursive: [
        { major: 8, minor: 0, op: 'read', value: 75 },
        { major: 8, minor: 0, op: 'write', value: 80 },
      ],
    },
  };
  expect(ContainerUsageAnswer.parse(v2)).toEqual(figures);
});

it('accepts missing figures, and returns null for a container that does not run', () => {
  const lean = {
    ...CPU,
    memory_stats: { usage: 9_000 },
    blkio_stats: { io_service_bytes_recursive: null },
    pids_stats: {},
  };
  expect(ContainerUsageAnswer.parse(lean)).toEqual({
    cpuNanos: 5_000,
    memoryBytes: 9_000,
    memoryWithFilesBytes: 9_000,
    residentBytes: null,
    cacheBytes: null,
    tasks: null,
    network: null,
    blockIo: null,
  });
  expect(ContainerUsageAnswer.parse({ cpu_stats: { cpu_usage: {} }, memory_stats: {} })).toBeNull();
});
