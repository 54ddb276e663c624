/** The GPU types of the market and their reference prices: what a node may cost hangs on these. */
import { matchesGpuType } from '../executors/gpu-type.ts';

export type CatalogueEntry = { name: string; usdPerGpuHour: number };

/** Full names as NVIDIA drivers report them; base USD per GPU and hour. */
export const MACHINE_CATALOGUE: readonly CatalogueEntry[] = [
  { name: 'NVIDIA B200', usdPerGpuHour: 4.5 },
  { name: 'NVIDIA H200', usdPerGpuHour: 2.8 },
  { name: 'NVIDIA H200 NVL', usdPerGpuHour: 2.6 },
  { name: 'NVIDIA H100 80GB HBM3', usdPerGpuHour: 2.2 },
  { name: 'NVIDIA H100 NVL', usdPerGpuHour: 2.0 },
  { name: 'NVIDIA H100 PCIe', usdPerGpuHour: 1.9 },
  { name: 'NVIDIA A100-SXM4-80GB', usdPerGpuHour: 1.2 },
  { name: 'NVIDIA A100 80GB PCIe', usdPerGpuHour: 1.1 },
  { name: 'NVIDIA A100-SXM4-40GB', usdPerGpuHour: 0.9 },
  { name: 'NVIDIA A100-PCIE-40GB', usdPerGpuHour: 0.8 },
  { name: 'NVIDIA L40S', usdPerGpuHour: 0.8 },
  { name: 'NVIDIA L40', usdPerGpuHour: 0.7 },
  { name: 'NVIDIA L4', usdPerGpuHour: 0.35 },
  { name: 'NVIDIA GeForce RTX 5090', usdPerGpuHour: 0.65 },
  { name: 'NVIDIA GeForce RTX 4090', usdPerGpuHour: 0.4 },
  { name: 'NVIDIA GeForce RTX 3090', usdPerGpuHour: 0.2 },
  { name: 'NVIDIA RTX 6000 Ada Generation', usdPerGpuHour: 0.75 },
  { name: 'NVIDIA RTX A6000', usdPerGpuHour: 0.45 },
  { name: 'NVIDIA RTX A5000', usdPerGpuHour: 0.25 },
  { name: 'NVIDIA RTX A4000', usdPerGpuHour: 0.15 },
  { name: 'NVIDIA A40', usdPerGpuHour: 0.4 },
  { name: 'NVIDIA A10', usdPerGpuHour: 0.3 },
  { name: 'Tesla V100-SXM2-32GB', usdPerGpuHour: 0.25 },
  { name: 'Tesla T4', usdPerGpuHour: 0.15 },
];

/** A price lies between these multiples of the reference price. */
export const MIN_PRICE_RATE = 0.5;
export const MAX_PRICE_RATE = 4;
/** The platform's part of what renters pay. */
export const PLATFORM_FEE_RATE = 0.05;

/** By full name; a short type means the first entry that has it. */
export function catalogueEntryOf(gpuType: string): CatalogueEntry | undefined {
  const exact = MACHINE_CATALOGUE.find(
    ({ name }) => name.toLowerCase() === gpuType.trim().toLowerCase(),
  );
  return exact ?? MACHINE_CATALOGUE.find(({ name }) => matchesGpuType(name, gpuType));
}
