/** The GPUs of this host through nvidia-smi; remembers the last good figures for when it fails. */
import type { Clock } from '#shared/clock.ts';
import type { GpuDriver, GpuFigures, GpuReading } from './gpu-driver.ts';
import { CSV_ARGS, parseGpuCsv } from './nvidia-csv.ts';
import type { NvidiaSmi } from './nvidia-smi.ts';
import { parseGpuXml, XML_ARGS } from './nvidia-xml.ts';

/** Older figures than this hide a fault rather than bridge it: then only the identity is shown. */
const FIGURES_USEFUL_MS = 60_000;
/** How soon a CUDA version that could not be read is tried again. */
const CUDA_RETRY_MS = 60_000;

type Good = Pick<GpuReading, 'driverVersion' | 'cudaVersion' | 'devices'> & { atMs: number };

export function createNvidiaDriver({ smi, clock }: { smi: NvidiaSmi; clock: Clock }): GpuDriver {
  const cudaVersionFor = createCudaVersion(smi, clock);
  let lastGood: Good | null = null;

  async function read(): Promise<GpuReading> {
    const run = await smi.run(CSV_ARGS);
    const { devices, driverVersion, rows, problems } = parseGpuCsv(run.stdout, run.complete);
    const noDevices = /no devices were found/i.test(run.stdout);
    const atMs = clock.monotonicMs();
    if (run.complete && (rows > 0 || noDevices)) {
      const cudaVersion = noDevices ? null : await cudaVersionFor(driverVersion);
      lastGood = { atMs, driverVersion, cudaVersion, devices };
      return { driverVersion, cudaVersion, devices, error: wordsOf(problems), ageMs: 0 };
    }
    const words = [...problems, ...(run.problem === null ? [] : [run.problem])];
    const partial = { atMs, driverVersion, cudaVersion: null, devices };
    return bridge(lastGood ?? partial, wordsOf(words) ?? SILENT);
  }

  function bridge({ atMs, ...good }: Good, error: string): GpuReading {
    const ageMs = clock.monotonicMs() - atMs;
    const devices = ageMs > FIGURES_USEFUL_MS ? good.devices.map(withoutFigures) : good.devices;
    return { ...good, devices, error, ageMs };
  }

  return { kind: 'nvidia', read };
}

const SILENT = 'nvidia-smi printed nothing';

/** CUDA's version is in the XML alone, which costs much; it changes with the driver only. */
function createCudaVersion(smi: NvidiaSmi, clock: Clock) {
  let known: { driverVersion: string | null; cudaVersion: string | null } | null = null;
  let retryAtMs = 0;
  return async (driverVersion: string | null): Promise<string | null> => {
    if (known !== null && known.driverVersion === driverVersion) {
      if (known.cudaVersion !== null || clock.monotonicMs() < retryAtMs) return known.cudaVersion;
    }
    const inventory = await parseGpuXml((await smi.run(XML_ARGS)).stdout);
    known = { driverVersion, cudaVersion: inventory?.cudaVersion ?? null };
    retryAtMs = clock.monotonicMs() + CUDA_RETRY_MS;
    return known.cudaVersion;
  };
}

function withoutFigures(device: GpuFigures): GpuFigures {
  return {
    ...device,
    memory_used_mib: null,
    utilization_percent: null,
    temperature_c: null,
    power_draw_w: null,
  };
}

function wordsOf(problems: readonly string[]): string | null {
  return problems.length === 0 ? null : problems.join('; ');
}
