/** The outputs of nvidia-smi that cost much or change seldom: kept for a while, read again when asked to. */
import type { GpuTopology } from '#shared/api/agent/inventory.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { GpuCard, GpuProcess } from '../gpu-driver.ts';
import { LIST_ARGS, type ListedGpu, parseGpuList } from './mig.ts';
import type { NvidiaSmi } from './nvidia-smi.ts';
import { parseTopology, TOPOLOGY_ARGS } from './topology.ts';
import { parseGpuXml, XML_ARGS, type XmlInventory } from './xml.ts';

/** Parsing a document of eight cards keeps the event loop for 20 to 30 ms. */
export const XML_FRESH_MS = 30_000;
/** Links fail, and then come up again, while a host runs. */
const TOPOLOGY_FRESH_MS = 600_000;
const TOPOLOGY_RETRY_MS = 60_000;
/** The health of cards is read from the document twice a minute. */
const PROCESSES_USEFUL_MS = 90_000;

export type NvidiaDocuments = ReturnType<typeof createNvidiaDocuments>;

export function createNvidiaDocuments({ smi, clock }: { smi: NvidiaSmi; clock: Clock }) {
  let lastXml: { atMs: number; xml: XmlInventory } | null = null;
  let lastTopology: { untilMs: number; cards: string; topology: GpuTopology | null } | null = null;

  /** Null when the run failed or printed no whole document. */
  async function readXml(): Promise<XmlInventory | null> {
    const { stdout, complete } = await smi.run(XML_ARGS);
    const xml = complete ? await parseGpuXml(stdout) : null;
    if (xml !== null) lastXml = { atMs: clock.monotonicMs(), xml };
    return xml;
  }

  function recentXmlOnly(): XmlInventory | null {
    if (lastXml === null || clock.monotonicMs() - lastXml.atMs > PROCESSES_USEFUL_MS) return null;
    return lastXml.xml;
  }

  return {
    readXml,
    /** The document that was read last, or a new one when that is older than `XML_FRESH_MS`. */
    async recentXml(): Promise<XmlInventory | null> {
      const fresh = lastXml !== null && clock.monotonicMs() - lastXml.atMs < XML_FRESH_MS;
      return fresh ? (lastXml?.xml ?? null) : readXml();
    },
    /** How many processes the last document shows on a whole card; null without a recent one. Runs nothing. */
    processesOn(uuid: string): number | null {
      return recentXmlOnly()?.gpus.find((gpu) => gpu.uuid === uuid)?.processes.length ?? null;
    },
    /** The processes of all cards in the last document; null without a recent one. Runs nothing. */
    processes(): GpuProcess[] | null {
      const xml = recentXmlOnly();
      if (xml === null) return null;
      return xml.gpus.flatMap(({ uuid, processes }) =>
        uuid === null ? [] : processes.map(({ pid, memoryMib }) => ({ uuid, pid, memoryMib })),
      );
    },
    /** The power limit that a whole card has by default, in the last document; null without one. Runs nothing. */
    defaultLimitOf(uuid: string): number | null {
      return lastXml?.xml.gpus.find((gpu) => gpu.uuid === uuid)?.powerDefaultLimitW ?? null;
    },
    /** Cards and their MIG devices, now. */
    async list(): Promise<ListedGpu[]> {
      return parseGpuList((await smi.run(LIST_ARGS)).stdout);
    },
    /** Of these cards; read anew when they are others than the last time, and now and then. */
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
