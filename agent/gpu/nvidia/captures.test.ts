/** Compares our XML parser with the package node-nvidia-smi, on our own documents and on captures of real drivers. */
import nodeNvidiaSmi from 'node-nvidia-smi';
import { afterAll, expect, it } from 'vitest';
import { captureNames, captureText } from '../../../test/fakes/agents/captured-nvidia-smi.ts';
import { createFakeNvidiaSmi } from '../../../test/fakes/agents/fake-nvidia-smi.ts';
import { H100_A, xmlDocument } from '../../../test/fixtures/nvidia-smi.ts';
import { amountOf, textOf } from './values.ts';
import { parseGpuXml } from './xml.ts';

const OWN_DOCUMENTS: [string, string][] = [
  ['two cards, new driver', xmlDocument()],
  ['two cards, old driver', xmlDocument({ power: 'old' })],
  ['one card of four', xmlDocument({ uuids: [H100_A], attached: 4 })],
];

const fake = createFakeNvidiaSmi();
const ownPath = process.env['PATH'];
afterAll(() => {
  process.env['PATH'] = ownPath;
  fake.remove();
});

const CAPTURES = captureNames('.xml').map((name): [string, string] => [name, captureText(name)]);

it.each([...OWN_DOCUMENTS, ...CAPTURES])(
  'reads the same values from %s as node-nvidia-smi',
  async (_, xml) => {
    const theirs = await oracle(xml);
    const ours = await parseGpuXml(xml);
    expect(ours).toMatchObject({
      driverVersion: textOf(theirs.driver_version),
      cudaVersion: textOf(theirs.cuda_version),
    });
    const theirGpus = [theirs.gpu ?? []].flat();
    expect(ours?.gpus).toHaveLength(theirGpus.length);
    for (const [index, gpu] of theirGpus.entries()) {
      const power = gpu.gpu_power_readings ?? gpu.power_readings;
      const draw = [power?.power_draw, power?.instant_power_draw, power?.average_power_draw];
      expect(ours?.gpus[index]).toMatchObject({
        uuid: textOf(gpu.uuid),
        name: textOf(gpu.product_name),
        pciBusId: gpu.$.id,
        memoryTotalMib: amountOf(gpu.fb_memory_usage?.total),
        memoryUsedMib: amountOf(gpu.fb_memory_usage?.used),
        powerDrawW: draw.map(amountOf).find((watts) => watts !== null) ?? null,
      });
      const processes = gpu.processes === undefined ? [] : theirProcesses(gpu.processes);
      expect(ours?.gpus[index]?.processes.map((process) => process.pid)).toEqual(processes);
    }
  },
);

type Texts = { [name: string]: string | undefined };
type TheirProcesses = string | { process_info?: Texts | Texts[] };
type TheirGpu = {
  $: { id: string };
  uuid?: string;
  product_name?: string;
  fb_memory_usage?: { total?: string; used?: string };
  gpu_power_readings?: PowerReadings;
  power_readings?: PowerReadings;
  processes?: TheirProcesses;
};
type PowerReadings = {
  power_draw?: string;
  instant_power_draw?: string;
  average_power_draw?: string;
};
type TheirLog = { driver_version?: string; cuda_version?: string; gpu?: TheirGpu | TheirGpu[] };

function theirProcesses(processes: TheirProcesses): number[] {
  if (typeof processes === 'string') return [];
  return [processes.process_info ?? []].flat().map((process) => Number(process['pid']));
}

/** The package runs nvidia-smi from the PATH of this process. */
function oracle(xml: string): Promise<TheirLog> {
  fake.become('cat "$HERE/xml"', { xml });
  process.env['PATH'] = fake.env.PATH;
  return new Promise((resolve, reject) => {
    nodeNvidiaSmi((error, data) => {
      if (error) reject(new Error(String(error)));
      else resolve(data.nvidia_smi_log as TheirLog);
    });
  });
}
