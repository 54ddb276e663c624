/** The GPUs of this host through nvidia-smi; remembers the last good figures for when it fails. */
import type { Clock } from '#shared/runtime/clock.ts';
import type {
  GpuCard,
  GpuDriver,
  GpuFigures,
  GpuReading,
  HealthReading,
  MigPart,
} from '../gpu-driver.ts';
import { faultOf } from './card-health.ts';
import { argsFor, createNvidiaFields, parseGpuCsv } from './csv.ts';
import { createNvidiaDocuments, type NvidiaDocuments } from './documents.ts';
import { isMigFree, migFigures, migParts } from './mig.ts';
import type { NvidiaSmi, SmiOutput } from './nvidia-smi.ts';

/** Older figures than this hide a fault rather than bridge it: then only the identity is shown. */
const FIGURES_USEFUL_MS = 60_000;
/** How soon a CUDA version that could not be read is tried again. */
const CUDA_RETRY_MS = 60_000;
const PROCESS_ARGS = ['--query-compute-apps=gpu_uuid,pid', '--format=csv,noheader'];

type Good = Omit<GpuReading, 'error' | 'ageMs' | 'exitCode'> & { atMs: number };

export function createNvidiaDriver({ smi, clock }: { smi: NvidiaSmi; clock: Clock }): GpuDriver {
  const documents = createNvidiaDocuments({ smi, clock });
  const cudaVersionFor = createCudaVersion(documents, clock);
  let lastGood: Good | null = null;
  const fields = createNvidiaFields();

  /** With the fields that the driver knows. */
  async function readCsv(): Promise<{ run: SmiOutput; asked: readonly string[] }> {
    for (;;) {
      const asked = fields.wanted();
      const run = await smi.run(argsFor(asked));
      if (!fields.isRefused(`${run.stdout} ${run.problem}`, asked)) return { run, asked };
    }
  }

  async function read(): Promise<GpuReading> {
    const { run, asked } = await readCsv();
    const parsed = parseGpuCsv(run.stdout, run.complete, asked);
    const { driverVersion, rows, cards, problems } = parsed;
    fields.noteVersion(driverVersion);
    const noDevices = /no devices were found/i.test(run.stdout);
    const atMs = clock.monotonicMs();
    if (run.complete && (rows > 0 || noDevices)) {
      const cudaVersion = noDevices ? null : await cudaVersionFor(driverVersion);
      const parts = await partsOf(documents, parsed.splitCards);
      const whole = parsed.devices.map((device) => ({
        ...device,
        processes: documents.processesOn(device.uuid),
        power_default_limit_w: documents.defaultLimitOf(device.uuid),
      }));
      const good = {
        ...{ driverVersion, cudaVersion, cards },
        devices: [...whole, ...parts.devices],
        parts: parts.places,
        processes: documents.processes(),
        topology: await documents.topology(cards),
      };
      lastGood = { atMs, ...good };
      const error = wordsOf([...problems, ...parts.problems]);
      return { ...good, error, ageMs: 0, exitCode: run.exitCode };
    }
    const words = [...problems, ...(run.problem === null ? [] : [run.problem])];
    const { devices } = parsed;
    const unknown = { cudaVersion: null, topology: null, parts: [], processes: null };
    const partial = { ...unknown, atMs, driverVersion, devices, cards };
    return bridge(lastGood ?? partial, wordsOf(words) ?? SILENT, run.exitCode);
  }

  function bridge(
    { atMs, ...good }: Good,
    error: string,
    exitCode: SmiOutput['exitCode'],
  ): GpuReading {
    const ageMs = clock.monotonicMs() - atMs;
    const devices = ageMs > FIGURES_USEFUL_MS ? good.devices.map(withoutFigures) : good.devices;
    return { ...good, devices, error, ageMs, exitCode };
  }

  async function health(): Promise<HealthReading | null> {
    const xml = await documents.readXml();
    // A document that lists no card at all says nothing of any: the driver is away, not every card lost.
    if (xml === null || xml.gpus.length === 0) return null;
    const isSplit = xml.gpus.some(({ migDevices }) => migDevices.length > 0);
    const list = isSplit ? await documents.list() : [];
    return {
      cards: xml.gpus.flatMap(({ uuid, pciBusId, health: found }) =>
        uuid === null ? [] : [{ uuid, pciBusId, fault: faultOf(found) }],
      ),
      migUuids: list.flatMap(({ migDevices }) => migDevices.map((device) => device.uuid)),
    };
  }

  async function isFree(uuid: string): Promise<boolean> {
    if (uuid.startsWith('MIG-')) {
      const xml = await documents.readXml();
      const free = xml === null ? null : isMigFree(uuid, await documents.list(), xml);
      if (free === null) throw new Error(`nvidia-smi does not tell what runs on ${uuid}`);
      return free;
    }
    const { stdout, complete, problem } = await smi.run(PROCESS_ARGS);
    // A run that failed lists no process either: it has not seen the GPU free.
    if (!complete || problem !== null) throw new Error(problem ?? 'nvidia-smi was cut off');
    return !stdout.includes(uuid);
  }

  return { kind: 'nvidia', read, health, isFree };
}

const SILENT = 'nvidia-smi printed nothing';

async function partsOf(
  documents: NvidiaDocuments,
  splitCards: readonly GpuCard[],
): Promise<{ devices: GpuFigures[]; places: MigPart[]; problems: string[] }> {
  if (splitCards.length === 0) return { devices: [], places: [], problems: [] };
  const [list, xml] = [await documents.list(), await documents.recentXml()];
  const devices = migFigures(splitCards, list, xml);
  const empty = splitCards.filter(
    ({ uuid }) => !devices.some((device) => device.mig?.parent_uuid === uuid),
  );
  return {
    devices,
    places: migParts(splitCards, list, xml),
    problems: empty.map(({ uuid }) => `${uuid} is in MIG mode and has no MIG devices`),
  };
}

/** CUDA's version is in the XML alone, which costs much; it changes with the driver only. */
function createCudaVersion(documents: NvidiaDocuments, clock: Clock) {
  let known: { driverVersion: string | null; cudaVersion: string | null } | null = null;
  let retryAtMs = 0;
  return async (driverVersion: string | null): Promise<string | null> => {
    if (known !== null && known.driverVersion === driverVersion) {
      if (known.cudaVersion !== null || clock.monotonicMs() < retryAtMs) return known.cudaVersion;
    }
    const changed = known !== null && known.driverVersion !== driverVersion;
    const inventory = await (changed ? documents.readXml() : documents.recentXml());
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
    graphics_clock_mhz: null,
    memory_clock_mhz: null,
    pcie_link: null,
    processes: null,
  };
}

function wordsOf(problems: readonly string[]): string | null {
  return problems.length === 0 ? null : problems.join('; ');
}
