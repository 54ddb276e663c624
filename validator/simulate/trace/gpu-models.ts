/** Models of GPUs in public traces, by the names that drivers report. Pure. */

/**
 * Models that the traces do not disclose (G1 to G3, GPU-series-1 and -2) or that are no longer sold have a stand-in of
 * similar memory.
 */
const MODELS: Readonly<Record<string, string>> = {
  P100: 'Tesla P100-PCIE-16GB',
  T4: 'Tesla T4',
  V100M16: 'Tesla V100-PCIE-16GB',
  V100M32: 'Tesla V100-SXM2-32GB',
  G1: 'NVIDIA L4',
  G2: 'NVIDIA A10',
  G3: 'NVIDIA A100-SXM4-80GB',
  A800: 'NVIDIA A100-SXM4-80GB',
  'A800-SXM4-80GB': 'NVIDIA A100-SXM4-80GB',
  H800: 'NVIDIA H100 80GB HBM3',
  'GPU-series-1': 'NVIDIA L40S',
  'GPU-series-2': 'NVIDIA H20',
  // Philly states only the memory.
  '12GB': 'NVIDIA GeForce RTX 3060',
  '24GB': 'Quadro RTX 6000',
};

/** Returns the full name of a model of a trace; null if it is unknown. `listed`: full names that the checks accept. */
export function fullNameOf(
  model: string,
  listed: Readonly<Record<string, unknown>>,
): string | null {
  const names = [MODELS[model] ?? model, `NVIDIA ${model}`];
  return names.find((name) => Object.hasOwn(listed, name)) ?? null;
}
