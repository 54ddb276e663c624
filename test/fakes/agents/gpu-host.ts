/** An agent on a separate engine whose GPUs a fake nvidia-smi reports. No real card is involved. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Inventory } from '#shared/api/agent/inventory.ts';
import { type PodSpecInput, PodView } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { createDockerodeEngine } from '../../../agent/containers/engine/dockerode-engine.ts';
import { createRunInContainer } from '../../../agent/containers/engine/run-in-container.ts';
import { chooseGpuDriver } from '../../../agent/gpu/choose-gpu-driver.ts';
import { createGpuSource } from '../../../agent/gpu/gpu-lease.ts';
import { createKernelLog } from '../../../agent/gpu/kernel-log.ts';
import { createNvidiaSmi } from '../../../agent/gpu/nvidia/nvidia-smi.ts';
import { csvRow, H100_A, H100_B, MIG_LIST, xmlDocument } from '../../fixtures/nvidia-smi.ts';
import { TWO_PAIRS } from '../../fixtures/nvidia-topology.ts';
import { eventually } from '../eventually.ts';
import { freePorts } from '../free-ports.ts';
import { createFakeNvidiaSmi } from './fake-nvidia-smi.ts';
import { command } from './real-host.ts';
import { createTestAgent, openFirewall, podSpec } from './test-agent.ts';

/** UUIDs of the third and fourth card. All cards are whole except H100_A, which is split by MIG as in MIG_LIST. */
export const CARD_C = 'GPU-51a2b3c4-0003-4aaa-8bbb-00000000000c';
export const CARD_D = 'GPU-51a2b3c4-0004-4aaa-8bbb-00000000000d';

const SMI =
  'case "$1" in -q) cat "$HERE/xml";; -L) cat "$HERE/list";; topo) cat "$HERE/topo";; --query-compute-apps*) cat "$HERE/apps";; --help*) cat "$HERE/help";; *) cat "$HERE/csv";; esac';
const CARDS = [H100_A, H100_B, CARD_C, CARD_D];
const CSV = CARDS.map((uuid, index) =>
  csvRow({
    uuid,
    index: String(index),
    'pci.bus_id': `00000000:${index + 1}B:00.0`,
    ...(index === 0 ? { 'mig.mode.current': 'Enabled' } : {}),
  }),
).join('\n');
const PORTS = 10;

export type GpuHost = Awaited<ReturnType<typeof createGpuHost>>;

export async function createGpuHost(socketPath: string) {
  const clock = systemClock;
  const fake = createFakeNvidiaSmi();
  const folder = mkdtempSync(join(tmpdir(), 'podwright-gpus-'));
  const kernelLog = join(folder, 'kmsg');
  writeFileSync(kernelLog, '');
  const texts = { csv: `${CSV}\n`, list: MIG_LIST, topo: TWO_PAIRS };
  const become = (change: Record<string, string>) => fake.become(SMI, change);
  become({ ...texts, xml: xmlDocument({ uuids: CARDS, mig: [H100_A], processes: [] }), apps: '' });
  const executorId = systemRandom.uuid();
  const smi = createNvidiaSmi({ clock, runCommand, env: fake.env });
  const gpuDriver = await chooseGpuDriver({
    mode: 'nvidia',
    simulatedGpus: [],
    executorId,
    smi,
    clock,
    cardsOnBus: async () => [],
  });
  const agent = createTestAgent({
    clock,
    executorId,
    gpuDriver,
    engine: createDockerodeEngine({ socketPath, clock }),
    gpus: createGpuSource(gpuDriver),
    kernelLog: createKernelLog(kernelLog),
    // The agent reads two NUMA nodes although the kernel has one.
    numaNodes: async () => [
      { id: 0, cpus: '0', memoryBytes: 2 ** 33 },
      { id: 1, cpus: '1', memoryBytes: 2 ** 33 },
    ],
    runInContainer: createRunInContainer({ socketPath, clock }),
    portRange: await freePorts(PORTS),
    firewall: openFirewall(),
  });
  agent.start();

  const inject = (method: 'GET' | 'PUT' | 'POST' | 'DELETE', url: string, payload?: object) =>
    agent.server.inject({ method, url, ...(payload === undefined ? {} : { payload }) });
  const view = async (id: string) => PodView.parse((await inject('GET', `/v1/pods/${id}`)).json());

  return {
    agent,
    view,
    kernelLog,
    /** Replaces outputs of the fake nvidia-smi by name: csv, xml, list, topo, apps. */
    become,
    put: (id: string, gpu_uuids: string[], change: Partial<PodSpecInput> = {}) =>
      inject('PUT', `/v1/pods/${id}`, podSpec({ gpu_uuids, internal_ports: [], ...change })),
    remove: (id: string) => inject('DELETE', `/v1/pods/${id}`),
    reboot: (id: string, reboot: number) => inject('POST', `/v1/pods/${id}/reboot`, { reboot }),
    until: (id: string, phase: PodView['phase']) =>
      eventually(`pod ${id} ${phase}`, async () => {
        const seen = await view(id);
        return seen.phase === phase && seen;
      }).catch(async (cause: unknown) => {
        throw new Error(JSON.stringify(await view(id)), { cause });
      }),
    async inventory(): Promise<Inventory> {
      return Inventory.parse((await inject('GET', '/v1/inventory')).json());
    },
    docker: (...args: string[]) => command('docker', '-H', `unix://${socketPath}`, ...args),
    async close(): Promise<void> {
      await agent.stop();
      fake.remove();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
