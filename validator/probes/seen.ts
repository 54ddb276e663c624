/** Facts that a measurement into a rented pod reads, and the offer with which they are compared. Pure. */
import { z } from 'zod';
import { Amount, Name } from '#shared/api/agent/bounds.ts';
import type { HiddenRentalFacts, RentalFact, RentalMismatch } from '../checks/measured.ts';
import type { RentedPod } from './renter-client.ts';

/** The offer of a rental, as the listing states it. */
export type Offer = {
  /** Null for simulated cards and for parts of cards, which have no device of that size. */
  cards: { count: number; model: string; memoryMib: number } | null;
  cores: number;
  memoryKib: number;
  diskKib: number;
  /** True if the template runs nothing that may use a card. */
  isIdle: boolean;
};

const Card = z.object({ model: Name, memory_mib: Amount, used_mib: Amount, uuid: Name });

/** Values that could not be read are null. A host may print anything, so each value has a bound. */
export const Seen = z.object({
  /** Limits of the container; null also without a limit. */
  quota_cores: z.number().min(0).max(1e6).nullable().catch(null).default(null),
  limit_kib: Amount.nullable().catch(null).default(null),
  /** Processors and memory that the kernel reports. */
  processors: Amount.nullable().catch(null).default(null),
  total_kib: Amount.nullable().catch(null).default(null),
  free_disk_kib: Amount.nullable().catch(null).default(null),
  cards: z.array(Card).max(1_024).nullable().catch(null).default(null),
  /** Device files of cards. */
  devices: Amount.nullable().catch(null).default(null),
  /** Processor time of programs that ran at once, divided by the time that passed. */
  busy_cores: z.number().min(0).max(1e6).nullable().catch(null).default(null),
  /** True if the pod could use some memory, and write some data. */
  used_memory: z.boolean().nullable().catch(null).default(null),
  wrote_disk: z.boolean().nullable().catch(null).default(null),
});
export type Seen = z.output<typeof Seen>;

/** Result of one measurement: the facts, or the reason why the pod could not be reached. */
export type Measurement = { seen: Seen } | { unreachable: string };

/** Part of the node's free disk that the market divides among pods. */
const DISK_SHARE = 0.9;
const PARTS = / MIG /;
/** Commands of templates that leave the cards idle. */
const IDLE_COMMANDS = ['', 'sleep infinity'];

export function offerOf(pod: RentedPod, startupCommands: string): Offer {
  const { executor, gpu_name: model } = pod;
  const count = Number(pod.gpu_count);
  const share = count / Math.max(1, executor.gpu_count);
  const sizes = executor.specs.gpu.details.map(({ capacity }) => capacity);
  const hasCards = !executor.simulated && count > 0 && !PARTS.test(model);
  return {
    cards: hasCards ? { count, model, memoryMib: Math.min(...sizes) } : null,
    cores: pod.cpu_count,
    memoryKib: pod.ram_total,
    diskKib: Math.floor(executor.specs.hard_disk.free * DISK_SHARE * share),
    isIdle: IDLE_COMMANDS.includes(startupCommands),
  };
}

/** Programs that run at once to measure processor time; more would measure the host's scheduler. */
export const MAX_WORKERS = 64;
/** Tolerance for limits, which the kernel rounds, and for memory, of which drivers reserve some. */
const LIMIT_SHARE = 0.97;
/** Tolerance for processor time: other pods and the host cause short waits. */
const BUSY_SHARE = 0.5;
/** Tolerance for the disk, on which images and other pods arrive after the offer. */
const DISK_LEFT = 0.5;
/** Used memory of an idle card, which the driver itself needs in part. */
const IDLE_CARD_SHARE = 0.1;

type Shortfall = { fact: RentalFact; offered: string; seen: string };

/** Facts below the offer. A value that is null proves nothing, unless no value of its kind could be read. */
export function shortfallsIn(offer: Offer, measurement: Measurement): Shortfall[] {
  if ('unreachable' in measurement) {
    return [{ fact: 'login', offered: 'SSH', seen: measurement.unreachable }];
  }
  const { seen } = measurement;
  const isSilent = Object.values(seen).every((value) => value === null);
  if (isSilent) return [{ fact: 'login', offered: 'SSH', seen: 'no readable output' }];
  return [...cardsBelow(offer, seen), ...resourcesBelow(offer, seen)];
}

function resourcesBelow({ cores, memoryKib, diskKib }: Offer, seen: Seen): Shortfall[] {
  const workers = Math.min(cores, MAX_WORKERS);
  const below = (value: number | null, least: number) => value !== null && value < least;
  const coresSeen = below(seen.quota_cores, cores * LIMIT_SHARE)
    ? `limit ${seen.quota_cores}`
    : below(seen.processors, cores)
      ? `${seen.processors} processors`
      : below(seen.busy_cores, workers * BUSY_SHARE)
        ? `${seen.busy_cores?.toFixed(2)} busy`
        : unreadable(seen.quota_cores, seen.processors, seen.busy_cores);
  const memorySeen = below(seen.limit_kib, memoryKib * LIMIT_SHARE)
    ? `limit ${seen.limit_kib} KiB`
    : below(seen.total_kib, memoryKib * LIMIT_SHARE)
      ? `${seen.total_kib} KiB`
      : seen.used_memory === false
        ? 'not usable'
        : unreadable(seen.limit_kib, seen.total_kib, seen.used_memory);
  const diskSeen = below(seen.free_disk_kib, diskKib * DISK_LEFT)
    ? `${seen.free_disk_kib} KiB free`
    : seen.wrote_disk === false
      ? 'not writable'
      : unreadable(seen.free_disk_kib, seen.wrote_disk);
  return [
    ...shortfall('cores', `${cores} cores`, coresSeen),
    ...shortfall('memory', `${memoryKib} KiB`, memorySeen),
    ...shortfall('disk', `${diskKib} KiB`, diskSeen),
  ];
}

/** The images have the tools, so a host that hides all their output hides a fact. */
const unreadable = (...values: readonly unknown[]): string | null =>
  values.every((value) => value === null) ? 'unreadable' : null;

function cardsBelow({ cards: offered, isIdle }: Offer, { cards, devices }: Seen): Shortfall[] {
  if (offered === null) return [];
  const counts = [cards?.length, devices].filter((count) => count !== undefined && count !== null);
  const count = counts.length === 0 ? null : Math.min(...counts);
  const few = count !== null && count < offered.count ? `${count}` : null;
  const isOther = ({ model }: { model: string }) => model.trim() !== offered.model.trim();
  const isSmall = (card: { memory_mib: number }) =>
    card.memory_mib < offered.memoryMib * LIMIT_SHARE;
  const isUsed = (card: { memory_mib: number; used_mib: number }) =>
    isIdle && card.used_mib > card.memory_mib * IDLE_CARD_SHARE;
  const found = cards ?? [];
  const [small] = found.filter(isSmall);
  const [used] = found.filter(isUsed);
  const uuids = new Set(found.map(({ uuid }) => uuid));
  return [
    ...shortfall('cards', `${offered.count} cards`, few),
    ...shortfall('card_model', offered.model, found.find(isOther)?.model ?? null),
    ...shortfall('card_memory', `${offered.memoryMib} MiB`, small && `${small.memory_mib} MiB`),
    ...shortfall('card_in_use', 'idle cards', used && `${used.used_mib} MiB used`),
    ...shortfall(
      'card_uuids',
      `${found.length} UUIDs`,
      uuids.size < found.length ? `${uuids.size}` : null,
    ),
  ];
}

const shortfall = (
  fact: RentalFact,
  offered: string,
  seen: string | null | undefined,
): Shortfall[] => (seen === null || seen === undefined ? [] : [{ fact, offered, seen }]);

const HOUR_MS = 3_600_000;

/** Compares two measurements with the offer: a fact counts as a mismatch if both found it below the offer. */
export function compareMeasurements(
  offer: Offer,
  [first, second]: readonly [Measurement, Measurement],
  { downKbit, endedMs }: { downKbit: number | null; endedMs: number },
): HiddenRentalFacts {
  const before = shortfallsIn(offer, first);
  const after = shortfallsIn(offer, second);
  const mismatches = before.flatMap((each): RentalMismatch[] => {
    const again = after.find(({ fact }) => fact === each.fact);
    if (again === undefined) return [];
    return [{ fact: each.fact, offered: each.offered, seen: [each.seen, again.seen] }];
  });
  const both = mismatches.map(({ fact }) => fact);
  const once = [...before, ...after].map(({ fact }) => fact).filter((fact) => !both.includes(fact));
  return {
    mismatches,
    seen_once: [...new Set(once)],
    down_kbit: downKbit,
    ended_ms: Math.floor(endedMs / HOUR_MS) * HOUR_MS,
  };
}
