/** Fields that select nodes: filters of the market, and members of a rental by specification. Pure. */

/** Labels, units, limits and hints, by the name of the field, which is that of the API. */
export const NODE_FIELDS = {
  gpu_type: { name: 'gpu_type', label: 'GPU type' },
  gpu_count_gte: { name: 'gpu_count_gte', label: 'Free GPUs, at least', min: 1, step: 1 },
  min_vram_gb: {
    name: 'min_vram_gb',
    label: 'Memory of each GPU, at least',
    unit: 'GB',
    min: 0,
  },
  price_lte: { name: 'price_lte', label: 'Price per GPU, at most', unit: '$/h', min: 0 },
  max_price_per_gpu_hour: {
    name: 'max_price_per_gpu_hour',
    label: 'Price per GPU, at most',
    unit: '$/h',
    min: 0,
  },
  price_per_hour_lte: {
    name: 'price_per_hour_lte',
    label: 'Total price, at most',
    unit: '$/h',
    min: 0,
  },
  country: { name: 'country', label: 'Country', hint: 'Code or English name.', maxLength: 200 },
  region: { name: 'region', label: 'Region', maxLength: 200 },
  min_reliability: {
    name: 'min_reliability',
    label: 'Reliability, at least',
    min: 0,
    max: 1,
    hint: 'From 0 to 1, over 30 days.',
  },
  min_cpus: { name: 'min_cpus', label: 'Processors, at least', min: 0, step: 1 },
  min_ram_gb: { name: 'min_ram_gb', label: 'Memory, at least', unit: 'GB', min: 0 },
  min_disk_gb: { name: 'min_disk_gb', label: 'Free disk, at least', unit: 'GB', min: 0 },
  max_check_age_minutes: {
    name: 'max_check_age_minutes',
    label: 'Age of the last check, at most',
    unit: 'minutes',
    min: 1,
    step: 1,
  },
  max_distance_mile: {
    name: 'max_distance_mile',
    label: 'Distance, at most',
    unit: 'miles',
    min: 0,
    hint: 'From the place below.',
  },
  bookmarked: { name: 'bookmarked', label: 'Bookmarked nodes only' },
} as const;
