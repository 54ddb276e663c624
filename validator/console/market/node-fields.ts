/** Fields that the filters of the market and a rental by specification share. Pure. */

/** Labels, limits and hints, by the name of the field, which is that of the API. */
export const NODE_FIELDS = {
  min_vram_gb: {
    name: 'min_vram_gb',
    label: 'Memory of each GPU, at least',
    unit: 'GB',
    min: 0,
  },
  country: { name: 'country', label: 'Country', hint: 'Code or English name.', maxLength: 200 },
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
} as const;
