/** GPU types of the market and their reference prices, which limit the price of a node. */
import { matchesGpuType, migPartOf, shortGpuType } from '#shared/api/gpu-type.ts';

export type CatalogueEntry = { name: string; usdPerGpuHour: number };

/**
 * Full names as NVIDIA drivers report them; USD per GPU and hour. Of several entries with the same short type, the most
 * common comes first.
 */
export const MACHINE_CATALOGUE: readonly CatalogueEntry[] = [
  { name: 'NVIDIA B300', usdPerGpuHour: 5.5 },
  { name: 'NVIDIA B200', usdPerGpuHour: 4.5 },
  { name: 'NVIDIA GB200', usdPerGpuHour: 4.8 },
  { name: 'NVIDIA H200', usdPerGpuHour: 2.8 },
  { name: 'NVIDIA H200 NVL', usdPerGpuHour: 2.6 },
  { name: 'NVIDIA GH200 480GB', usdPerGpuHour: 2.4 },
  { name: 'NVIDIA H100 80GB HBM3', usdPerGpuHour: 2.2 },
  { name: 'NVIDIA H100 NVL', usdPerGpuHour: 2.0 },
  { name: 'NVIDIA H100 PCIe', usdPerGpuHour: 1.9 },
  { name: 'NVIDIA H20', usdPerGpuHour: 1.5 },
  { name: 'NVIDIA A100-SXM4-80GB', usdPerGpuHour: 1.2 },
  { name: 'NVIDIA A100 80GB PCIe', usdPerGpuHour: 1.1 },
  { name: 'NVIDIA A100-SXM4-40GB', usdPerGpuHour: 0.9 },
  { name: 'NVIDIA A100-PCIE-40GB', usdPerGpuHour: 0.8 },
  { name: 'NVIDIA L40S', usdPerGpuHour: 0.8 },
  { name: 'NVIDIA L40', usdPerGpuHour: 0.7 },
  { name: 'NVIDIA L4', usdPerGpuHour: 0.35 },
  { name: 'NVIDIA RTX PRO 6000 Blackwell Server Edition', usdPerGpuHour: 1.6 },
  { name: 'NVIDIA RTX PRO 6000 Blackwell Workstation Edition', usdPerGpuHour: 1.5 },
  { name: 'NVIDIA GeForce RTX 5090', usdPerGpuHour: 0.65 },
  { name: 'NVIDIA GeForce RTX 5080', usdPerGpuHour: 0.4 },
  { name: 'NVIDIA GeForce RTX 4090', usdPerGpuHour: 0.4 },
  { name: 'NVIDIA GeForce RTX 4080', usdPerGpuHour: 0.3 },
  { name: 'NVIDIA GeForce RTX 4070 Ti', usdPerGpuHour: 0.2 },
  { name: 'NVIDIA GeForce RTX 3090 Ti', usdPerGpuHour: 0.24 },
  { name: 'NVIDIA GeForce RTX 3090', usdPerGpuHour: 0.2 },
  { name: 'NVIDIA GeForce RTX 3080', usdPerGpuHour: 0.15 },
  { name: 'NVIDIA GeForce RTX 3070', usdPerGpuHour: 0.12 },
  { name: 'NVIDIA GeForce RTX 3060', usdPerGpuHour: 0.1 },
  { name: 'NVIDIA RTX 6000 Ada Generation', usdPerGpuHour: 0.75 },
  { name: 'NVIDIA RTX 5000 Ada Generation', usdPerGpuHour: 0.5 },
  { name: 'NVIDIA RTX 4000 Ada Generation', usdPerGpuHour: 0.3 },
  { name: 'NVIDIA RTX A6000', usdPerGpuHour: 0.45 },
  { name: 'NVIDIA RTX A5000', usdPerGpuHour: 0.25 },
  { name: 'NVIDIA RTX A4000', usdPerGpuHour: 0.15 },
  { name: 'NVIDIA A40', usdPerGpuHour: 0.4 },
  { name: 'NVIDIA A30', usdPerGpuHour: 0.35 },
  { name: 'NVIDIA A10', usdPerGpuHour: 0.3 },
  { name: 'NVIDIA A10G', usdPerGpuHour: 0.35 },
  { name: 'NVIDIA A16', usdPerGpuHour: 0.2 },
  { name: 'Quadro RTX 8000', usdPerGpuHour: 0.3 },
  { name: 'Quadro RTX 6000', usdPerGpuHour: 0.25 },
  { name: 'Tesla V100-SXM2-32GB', usdPerGpuHour: 0.25 },
  { name: 'Tesla V100-PCIE-16GB', usdPerGpuHour: 0.2 },
  { name: 'Tesla P100-PCIE-16GB', usdPerGpuHour: 0.12 },
  { name: 'Tesla T4', usdPerGpuHour: 0.15 },
];

/** Bounds of a price, as multiples of the reference price. */
export const MIN_PRICE_RATE = 0.5;
export const MAX_PRICE_RATE = 4;

const CENTS_PER_USD = 100;
/** Profile of a MIG device as drivers write it; any other suffix is text of the provider. */
const MIG_PROFILE = / MIG (?:[1-7]c\.)?[1-7]g\.\d{1,3}gb(?:\+(?:me|gfx)(?:\.all)?)?$/;

/** Spelling of a known type: the full name if `gpuType` is a full name, otherwise the short type. */
export function knownTypeName(gpuType: string): string | undefined {
  const entry = catalogueEntryOf(gpuType);
  if (entry === undefined) return undefined;
  const isFullName = entry.name.toLowerCase() === gpuType.trim().toLowerCase();
  return isFullName ? entry.name : shortGpuType(entry.name);
}

/**
 * Finds an entry by full name, or the first entry with the same short type. A MIG device costs its share of its card.
 */
export function catalogueEntryOf(gpuType: string): CatalogueEntry | undefined {
  const wanted = gpuType.trim();
  const part = migPartOf(wanted);
  return part === null ? cardEntryOf(wanted) : partEntryOf(wanted, part);
}

function partEntryOf(
  gpuType: string,
  { card, share }: { card: string; share: number },
): CatalogueEntry | undefined {
  const entry = cardEntryOf(card);
  if (entry === undefined || !MIG_PROFILE.test(gpuType)) return undefined;
  const cents = Math.ceil(entry.usdPerGpuHour * share * CENTS_PER_USD);
  return {
    name: `${entry.name}${gpuType.slice(card.length)}`,
    usdPerGpuHour: cents / CENTS_PER_USD,
  };
}

function cardEntryOf(wanted: string): CatalogueEntry | undefined {
  const exact = MACHINE_CATALOGUE.find(({ name }) => name.toLowerCase() === wanted.toLowerCase());
  return (
    exact ??
    MACHINE_CATALOGUE.find(({ name }) => matchesGpuType(name, wanted)) ??
    MACHINE_CATALOGUE.find(({ name }) => matchesGpuType(name, shortGpuType(wanted)))
  );
}
