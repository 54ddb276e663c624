/** GPU driver over nvidia-smi. While nvidia-smi fails it returns the last good values, with their age. */
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
import { parseGpuCsv } from './csv.ts';
import { createNvidiaDocuments, type NvidiaDocuments } from './documents.ts';
import { argsFor, createNvidiaFields, HELP_ARGS } from './fields.ts';
import { isMigFree, migFaults, migFigures, migParts } from './mig.ts';
import type { NvidiaSmi, SmiOutput } from './nvidia-smi.ts';

/**
 * Maximum age of returned values. Older values would hide a fault, so beyond this age only the identity of the cards is
 * returned.
 */
const FIGURES_USEFUL_MS = 60_000;
/** Retry interval after the CUDA version could not be read. */
const CUDA_RETRY_MS = 60_000;
/**
 * Maximum number of queries of one reading that may be rejected before only the fields that leases need are queried. The
 * next reading continues with the other fields.
 */
const MAX_RETRIES = 12;
const PROCESS_ARGS = ['--query-compute-apps=gpu_uuid,pid', '--format=csv,noheader'];

type LastReading = Omit<GpuReading, 'error' | 'ageMs' | 'exitCode'> & { atMs: number };

export function createNvidiaDriver({ smi, clock }: { smi: NvidiaSmi; clock: Clock }): GpuDriver {
  const documents = createNvidiaDocuments({ smi, clock });
  const cudaVersionFor = createCudaVersion(documents, clock);
  let lastGood: LastReading | null = null;
  const fields = createNvidiaFields();

  /** Queries the fields that the driver supports. */
  async function readCsv(): Promise<{ run: SmiOutput; queried: readonly string[] }> {
    if (fields.needsHelp()) fields.recordHelp((await smi.run(HELP_ARGS)).stdout);
    for (let retries = 0; ; retries += 1) {
      const queried = retries < MAX_RETRIES ? fields.current() : fields.needed();
      const run = await smi.run(argsFor(queried));
      if (!fields.isRejected(`${run.stdout} ${run.problem}`, queried)) return { run, queried };
    }
  }

  async function read(): Promise<GpuReading> {
    const { run, queried } = await readCsv();
    const parsed = parseGpuCsv(run.stdout, run.complete, queried);
    const { driverVersion, rows, cards, problems } = parsed;
    fields.recordVersion(driverVersion);
    const noDevices = /no devices were found/i.test(run.stdout);
    const atMs = clock.monotonicMs();
    if (run.complete && (rows > 0 || noDevices)) {
      const cudaVersion = noDevices ? null : await cudaVersionFor(driverVersion);
      const parts = await partsOf(documents, parsed.splitCards);
      const whole = parsed.devices.map((device) => withDocument(device, documents));
      const good = {
        driverVersion,
        cudaVersion,
        cards,
        devices: [...whole, ...parts.devices],
        parts: parts.places,
        processes: documents.processes(),
        topology: await documents.topology(cards),
      };
      lastGood = { atMs, ...good };
      const error = joinProblems([...problems, ...parts.problems]);
      return { ...good, error, ageMs: 0, exitCode: run.exitCode };
    }
    const failures = [...problems, ...(run.problem === null ? [] : [run.problem])];
    const { devices } = parsed;
    const unknown = { cudaVersion: null, topology: null, parts: [], processes: null };
    const partial = { ...unknown, atMs, driverVersion, devices, cards };
    return bridge(lastGood ?? partial, joinProblems(failures) ?? NO_OUTPUT, run.exitCode);
  }

  function bridge(
    { atMs, ...good }: LastReading,
    error: string,
    exitCode: SmiOutput['exitCode'],
  ): GpuReading {
    const ageMs = clock.monotonicMs() - atMs;
    const devices = ageMs > FIGURES_USEFUL_MS ? good.devices.map(withoutFigures) : good.devices;
    return { ...good, devices, error, ageMs, exitCode };
  }

  async function health(): Promise<HealthReading | null> {
    const xml = await documents.readXml();
    // A document without any card means that the driver is unavailable, not that all cards are lost.
    if (xml === null || xml.gpus.length === 0) return null;
    const isSplit = xml.gpus.some(({ migDevices }) => migDevices.length > 0);
    const list = isSplit ? await documents.list() : [];
    return {
      cards: xml.gpus.flatMap(({ uuid, pciBusId, health: found }) =>
        uuid === null ? [] : [{ uuid, pciBusId, fault: faultOf(found) }],
      ),
      migDevices: migFaults(list, xml),
    };
  }

  async function isFree(uuid: string): Promise<boolean> {
    if (uuid.startsWith('MIG-')) {
      const xml = await documents.readXml();
      const free = xml === null ? null : isMigFree(uuid, await documents.list(), xml);
      if (free === null) throw new Error(`nvidia-smi does not list the processes on ${uuid}`);
      return free;
    }
    const { stdout, complete, problem } = await smi.run(PROCESS_ARGS);
    // A failed run lists no processes either, so it does not show that the GPU is free.
    if (!complete || problem !== null)
      throw new Error(problem ?? 'the output of nvidia-smi is incomplete');
    return !stdout.includes(uuid);
  }

  return { kind: 'nvidia', read, health, isFree };
}

const NO_OUTPUT = 'nvidia-smi printed nothing';

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

/** Caches the CUDA version, which only the expensive XML document contains; it changes only with the driver. */
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

/** Adds what only the XML document has. The limits of the query, which is newer, have precedence. */
function withDocument(device: GpuFigures, documents: NvidiaDocuments): GpuFigures {
  const limits = documents.limitsOf(device.uuid);
  const enforced = device.power_enforced_limit_w ?? limits.power_enforced_limit_w;
  return {
    ...device,
    ...documents.processesOn(device.uuid),
    power_limit_w: device.power_limit_w ?? limits.power_limit_w ?? enforced,
    power_enforced_limit_w: enforced,
    power_default_limit_w: device.power_default_limit_w ?? limits.power_default_limit_w,
    power_max_limit_w: device.power_max_limit_w ?? limits.power_max_limit_w,
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
    recovery_action: null,
    processes: null,
    compute_processes: null,
    graphics_processes: null,
  };
}

function joinProblems(problems: readonly string[]): string | null {
  return problems.length === 0 ? null : problems.join('; ');
}
