/** Under whose names GPU metrics are told: nvidia_gpu_exporter's, NVIDIA's DCGM exporter's, both or none. */
export const GPU_METRICS = ['nvidia', 'dcgm', 'both', 'none'] as const;
export type GpuMetrics = (typeof GPU_METRICS)[number];
