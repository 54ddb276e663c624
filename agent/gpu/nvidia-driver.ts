/** The GPUs of this host through nvidia-smi; remembers the last good figures for when it fails. */
import type { Clock } from '#shared/clock.ts';
import type { GpuDriver, GpuFigures, GpuReading, HealthReading } from './gpu-driver.ts';
import { faultOf } from './gpu-fault.ts';
import {
  CSV_ARGS,
  type GpuCard,
  NEEDED_CSV_ARGS,
  parseGpuCsv,
  UNKNOWN_FIELD,
} from './nvidia-csv.ts';
import { createNvidiaDocuments, type NvidiaDocuments } from './nvidia-documents.ts';
import { isMigFree, migFigures } from './nvidia-mig.ts';
import type { NvidiaSmi, SmiOutput } from './nvidia-smi.ts';

/** Older figures than this hide a fault rather than bridge it: then only the identity is shown. */
const FIGURES_USEFUL_MS = 60_000;
/** How soon a CUDA version that could not be read is tried again. */
const CUDA_RETRY_MS = 60_000;
const PROCESS_ARGS = ['--query-compute-apps=gpu_uuid,pid', '--format=csv,noheader'];

type Good = Omit<GpuReading, 'error' | 'ageMs'> & { atMs: number };

export function createNvidiaDriver({ smi, clock }: { smi: NvidiaSmi; clock: Clock }): GpuDriver {
  const documents = createNvidiaDocuments({ smi, clock });
  const cudaVersionFor = createCudaVersion(documents, clock);
  let lastGood: Good | null = null;
  let csvArgs: readonly string[] = CSV_ARGS;
  /** Of the driver that refused a field; null while that is not known. */
  let refusedBy: string | null = null;

  async function readCsv(): Promise<SmiOutput> {
    const run = await smi.run(csvArgs);
    if (csvArgs === NEEDED_CSV_ARGS || !UNKNOWN_FIELD.test(`${run.stdout} ${run.problem}`))
      return run;
    csvArgs = NEEDED_CSV_ARGS;
    return smi.run(csvArgs);
  }

  /** After an update the driver is asked for every field again, from the next reading on. */
  function noteVersion(driverVersion: string | null): void {
    if (csvArgs === CSV_ARGS || driverVersion === null) return;
    const isOther = refusedBy !== null && refusedBy !== driverVersion;
    refusedBy = isOther ? null : driverVersion;
    if (isOther) csvArgs = CSV_ARGS;
  }

  async function read(): Promise<GpuReading> {
    const run = await readCsv();
    const parsed = parseGpuCsv(run.stdout, run.complete);
    const { driverVersion, rows, cards, problems } = parsed;
    noteVersion(driverVersion);
    const noDevices = /no devices were found/i.test(run.stdout);
    const atMs = clock.monotonicMs();
    if (run.complete && (rows > 0 || noDevices)) {
      const cudaVersion = noDevices ? null : await cudaVersionFor(driverVersion);
      const parts = await partsOf(documents, parsed.splitCards);
      const whole = parsed.devices.map((device) => ({
        ...device,
        processes: documents.processIdsOn(device.uuid)?.length ?? null,
        power_default_limit_w: documents.defaultLimitOf(device.uuid),
      }));
      const devices = [...whole, ...parts.devices];
      const topology = await documents.topology(cards);
      lastGood = { atMs, driverVersion, cudaVersion, devices, topology };
      const error = wordsOf([...problems, ...parts.problems]);
      return { driverVersion, cudaVersion, devices, topology, error, ageMs: 0 };
    }
    const words = [...problems, ...(run.problem === null ? [] : [run.problem])];
    const { devices } = parsed;
    const partial = { atMs, driverVersion, cudaVersion: null, devices, topology: null };
    return bridge(lastGood ?? partial, wordsOf(words) ?? SILENT);
  }

  function bridge({ atMs, ...good }: Good, error: string): GpuReading {
    const ageMs = clock.monotonicMs() - atMs;
    const devices = ageMs > FIGURES_USEFUL_MS ? good.devices.map(withoutFigures) : good.devices;
    return { ...good, devices, error, ageMs };
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

  return { kind: 'nvidia', read, health, isFree, processIdsOn: documents.processIdsOn };
}

const SILENT = 'nvidia-smi printed nothing';

async function partsOf(
  documents: NvidiaDocuments,
  splitCards: readonly GpuCard[],
): Promise<{ devices: GpuFigures[]; problems: string[] }> {
  if (splitCards.length === 0) return { devices: [], problems: [] };
  const devices = migFigures(splitCards, await documents.list(), await documents.recentXml());
  const empty = splitCards.filter(
    ({ uuid }) => !devices.some((device) => device.mig?.parent_uuid === uuid),
  );
  return {
    devices,
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
