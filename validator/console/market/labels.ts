/** Labels of the fields that select nodes, for explanations. A test compares them with the forms. */
export const LABELS = {
  gpu_type: 'GPU type',
  gpu_count: 'GPUs',
  gpu_count_gte: 'Free GPUs, at least',
  min_vram_gb: 'Memory of each GPU, at least',
  price_lte: 'Price per GPU, at most',
  max_price_per_gpu_hour: 'Price per GPU, at most',
  price_per_hour_lte: 'Total price, at most',
  country: 'Country',
  region: 'Region',
  min_reliability: 'Reliability, at least',
  min_cpus: 'Processors, at least',
  min_ram_gb: 'Memory, at least',
  min_disk_gb: 'Free disk, at least',
  max_check_age_minutes: 'Age of the last check, at most',
  max_distance_mile: 'Distance, at most',
  bookmarked: 'Bookmarked nodes only',
} as const;

/** Units of these fields. */
export const UNITS = {
  min_vram_gb: 'GB',
  min_ram_gb: 'GB',
  min_disk_gb: 'GB',
  max_check_age_minutes: 'minutes',
  max_distance_mile: 'miles',
} as const;
