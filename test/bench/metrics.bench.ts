/** Cost of metrics: a scrape with eight GPUs and fifty pods, a reading of eight GPUs, a sample of pod usage. */
import Fastify from 'fastify';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createNvidiaDriver } from '../../agent/gpu/nvidia/driver.ts';
import type { NvidiaSmi } from '../../agent/gpu/nvidia/nvidia-smi.ts';
import { parseGpuXml } from '../../agent/gpu/nvidia/xml.ts';
import { createSimulatedDriver } from '../../agent/gpu/simulated-gpus.ts';
import { createTestAgent, podSpec, TEST_HOST } from '../fakes/agents/test-agent.ts';
import { createFakeEngine } from '../fakes/engine/fake-engine.ts';
import { eventually } from '../fakes/eventually.ts';
import { xmlDocument } from '../fixtures/nvidia-smi.ts';
import { median, type Row, ratioAtMost } from '../measure/row.ts';
import { originOf } from './origin.ts';
import { podUsageCost } from './pod-usage.bench.ts';

const GPUS = 8;
const PODS = 50;
const SCRAPES = 100;
const READINGS = 1_000;
const MICROSECONDS_PER_MS = 1_000;
const MAX_SCRAPE_RATIO = 5;
const MAX_READING_RATIO = 0.5;
const IMAGE = 'registry.example/one:1';
const USAGE = {
  cpuNanos: 1e9,
  memoryBytes: 4_096,
  memoryWithFilesBytes: 8_192,
  residentBytes: 2_048,
  cacheBytes: 6_144,
  tasks: 3,
  network: { receivedBytes: 1, sentBytes: 2 },
  blockIo: { readBytes: 1, writtenBytes: 2 },
};

export async function metricsCost(): Promise<Row[]> {
  return [await scrapes(), await readings(), await podUsageCost()];
}

/** Measures scrapes, compared with a route that returns the same bytes from a string. */
async function scrapes(): Promise<Row> {
  const engine = createFakeEngine(systemClock);
  engine.addImage(IMAGE, `sha256:${'a1'.repeat(32)}`);
  const executorId = systemRandom.uuid();
  const cards = Array.from({ length: GPUS }, () => 'NVIDIA H100 80GB HBM3');
  const agent = createTestAgent({
    engine,
    executorId,
    clock: systemClock,
    separateMonitoring: true,
    gpuDriver: createSimulatedDriver(executorId, cards),
    host: { ...TEST_HOST, memoryBytes: 2 ** 40, cpuCores: 128 },
  });
  const ids = Array.from({ length: PODS }, () => systemRandom.uuid());
  for (const id of ids) {
    const payload = podSpec({ image: { reference: IMAGE }, internal_ports: [] });
    await agent.server.inject({ method: 'PUT', url: `/v1/pods/${id}`, payload });
  }
  await eventually('the pods', () => ids.every((id) => agent.pods.get(id).phase === 'running'));
  for (const id of engine.containers.keys()) {
    engine.usages.set(id, USAGE);
  }
  await agent.metricsJob.runOnce();
  const bare = Fastify();
  try {
    await agent.monitoring?.listen({ host: '127.0.0.1', port: 0 });
    const url = `${originOf(agent.monitoring ?? agent.server)}/metrics`;
    const text = await (await fetch(url)).text();
    bare.get('/metrics', async () => text);
    await bare.listen({ host: '127.0.0.1', port: 0 });
    const reference = await medianMs(`${originOf(bare)}/metrics`);
    const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
    const name = `scrape of ${GPUS} GPUs and ${PODS} pods, ${series} series`;
    const measured = { ours: await medianMs(url), reference };
    return ratioAtMost(name, 'ms', 'the same bytes from a string', measured, MAX_SCRAPE_RATIO);
  } finally {
    await Promise.all([agent.stop(), bare.close()]);
  }
}

async function medianMs(url: string): Promise<number> {
  const took: number[] = [];
  for (let count = 0; count < SCRAPES; count += 1) {
    const beganMs = systemClock.monotonicMs();
    await (await fetch(url)).text();
    took.push(systemClock.monotonicMs() - beganMs);
  }
  return median(took);
}

/** Measures readings of GPUs, compared with reading their complete XML document each time. */
async function readings(): Promise<Row> {
  const uuids = Array.from(
    { length: GPUS },
    (_, index) => `GPU-${systemRandom.uuid().slice(0, 35)}${index}`,
  );
  const xml = xmlDocument({ uuids });
  const driver = createNvidiaDriver({ smi: immediateSmi(uuids, xml), clock: systemClock });
  const first = await driver.read();
  if (first.cards.length !== GPUS) throw new Error(`${first.cards.length} cards were read`);
  const measured = {
    ours: await cpuMs(READINGS, () => driver.read()),
    reference: await cpuMs(READINGS / 10, () => parseGpuXml(xml)),
  };
  const name = `reading of ${GPUS} GPUs, processor time outside nvidia-smi`;
  return ratioAtMost(name, 'ms', 'parsing its XML document', measured, MAX_READING_RATIO);
}

/** Returns every queried field at once, without a process. */
function immediateSmi(uuids: readonly string[], xml: string): NvidiaSmi {
  let lastQuery = '';
  let csv = '';
  return {
    async run([argument = '']) {
      const printed = { complete: true, problem: null, exitCode: 0 };
      if (!argument.startsWith('--query-gpu=')) return { ...printed, stdout: xml };
      if (argument !== lastQuery)
        csv = csvOf(argument.replace('--query-gpu=', '').split(','), uuids);
      lastQuery = argument;
      return { ...printed, stdout: csv };
    },
  };
}

function csvOf(fields: readonly string[], uuids: readonly string[]): string {
  const rows = uuids.map((uuid, index) => {
    const own: Record<string, string> = {
      index: String(index),
      uuid,
      name: 'NVIDIA H100 80GB HBM3',
      driver_version: '590.48.01',
    };
    return fields.map((field) => own[field] ?? '1024').join(', ');
  });
  return `${rows.join('\n')}\n`;
}

async function cpuMs(times: number, work: () => Promise<unknown>): Promise<number> {
  for (let count = 0; count < times; count += 1) await work();
  const before = process.cpuUsage();
  for (let count = 0; count < times; count += 1) await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / MICROSECONDS_PER_MS / times;
}
