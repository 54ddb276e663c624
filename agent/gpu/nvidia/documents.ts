/** Caches the outputs of nvidia-smi that are expensive or change rarely. */
import type { GpuTopology } from '#shared/api/agent/inventory.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { GpuCard, GpuProcess } from '../gpu-driver.ts';
import { LIST_ARGS, type ListedGpu, parseGpuList } from './mig.ts';
import { type NvidiaSmi, OUTPUT_TOO_LONG } from './nvidia-smi.ts';
import { parseTopology, TOPOLOGY_ARGS } from './topology.ts';
import { parseGpuXml, XML_ARGS, type XmlGpu, type XmlInventory } from './xml.ts';

/** Maximum age of the cached XML: parsing a document of eight cards blocks the event loop for 20 to 30 ms. */
export const XML_FRESH_MS = 30_000;
/** Maximum age of the cached topology: links may fail and recover while a host runs. */
const TOPOLOGY_FRESH_MS = 600_000;
const TOPOLOGY_RETRY_MS = 60_000;
/** Maximum age for process lists; the health job reads the document twice a minute. */
const PROCESSES_USEFUL_MS = 90_000;

export type NvidiaDocuments = ReturnType<typeof createNvidiaDocuments>;

export function createNvidiaDocuments({ smi, clock }: { smi: NvidiaSmi; clock: Clock }) {
  let lastXml: { atMs: number; xml: XmlInventory } | null = null;
  let lastTopology: { untilMs: number; cards: string; topology: GpuTopology | null } | null = null;

  async function list(): Promise<ListedGpu[]> {
    return parseGpuList((await smi.run(LIST_ARGS)).stdout);
  }

  /** Returns null if the run failed or printed an incomplete document. */
  async function readXml(): Promise<XmlInventory | null> {
    const { stdout, complete, problem } = await smi.run(XML_ARGS);
    const isTooLong = problem?.startsWith(OUTPUT_TOO_LONG) === true;
    const xml = complete ? await parseGpuXml(stdout) : isTooLong ? await readCardByCard() : null;
    if (xml !== null) lastXml = { atMs: clock.monotonicMs(), xml };
    return xml;
  }

  /** Reads one document per card, because the document of all cards of a large host is too long. */
  async function readCardByCard(): Promise<XmlInventory | null> {
    let whole: XmlInventory | null = null;
    const gpus: XmlGpu[] = [];
    for (const { uuid } of await list()) {
      const { stdout, complete } = await smi.run([...XML_ARGS, '-i', uuid]);
      const one = complete ? await parseGpuXml(stdout) : null;
      // A card without a document would count as lost.
      if (one === null) return null;
      whole ??= one;
      gpus.push(...one.gpus);
    }
    return whole === null ? null : { ...whole, attachedGpus: gpus.length, gpus };
  }

  function cachedXml(): XmlInventory | null {
    if (lastXml === null || clock.monotonicMs() - lastXml.atMs > PROCESSES_USEFUL_MS) return null;
    return lastXml.xml;
  }

  return {
    readXml,
    /** Returns the cached document, or a new one if it is older than `XML_FRESH_MS`. */
    async recentXml(): Promise<XmlInventory | null> {
      const fresh = lastXml !== null && clock.monotonicMs() - lastXml.atMs < XML_FRESH_MS;
      return fresh ? (lastXml?.xml ?? null) : readXml();
    },
    /** Numbers of processes on a whole card in the cached document; null without a recent one. */
    processesOn(uuid: string) {
      const found = cachedXml()?.gpus.find((gpu) => gpu.uuid === uuid)?.processes;
      return {
        processes: found?.length ?? null,
        compute_processes: found?.filter(({ computes }) => computes).length ?? null,
        graphics_processes: found?.filter(({ draws }) => draws).length ?? null,
      };
    },
    /** Processes of all cards in the cached document; null without a recent one. */
    processes(): GpuProcess[] | null {
      const xml = cachedXml();
      if (xml === null) return null;
      return xml.gpus.flatMap(({ uuid, processes }) =>
        uuid === null
          ? []
          : processes.map(({ pid, memoryMib, computes, draws }) => {
              return { uuid, pid, memoryMib, computes, draws };
            }),
      );
    },
    /** Power limits of a whole card in watts, from the cached document; null without one. */
    limitsOf(uuid: string) {
      const gpu = lastXml?.xml.gpus.find((other) => other.uuid === uuid);
      return {
        power_limit_w: gpu?.powerLimitW ?? null,
        power_enforced_limit_w: gpu?.powerEnforcedLimitW ?? null,
        power_default_limit_w: gpu?.powerDefaultLimitW ?? null,
        power_max_limit_w: gpu?.powerMaxLimitW ?? null,
      };
    },
    /** Lists cards and MIG devices; not cached. */
    list,
    /** Returns the topology of these cards, cached for ten minutes or until the cards change. */
    async topology(cards: readonly Pick<GpuCard, 'index' | 'uuid'>[]): Promise<GpuTopology | null> {
      if (cards.length === 0) return null;
      const key = cards.map(({ index, uuid }) => `${index} ${uuid}`).join();
      const nowMs = clock.monotonicMs();
      if (lastTopology?.cards === key && nowMs < lastTopology.untilMs) return lastTopology.topology;
      const { stdout } = await smi.run(TOPOLOGY_ARGS);
      const topology = parseTopology(stdout, cards);
      const untilMs = nowMs + (topology === null ? TOPOLOGY_RETRY_MS : TOPOLOGY_FRESH_MS);
      lastTopology = { untilMs, cards: key, topology };
      return topology;
    },
  };
}
