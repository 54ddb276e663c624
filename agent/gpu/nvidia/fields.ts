/** Fields of `nvidia-smi --query-gpu`, and which of them the present driver supports. Pure. */

/** Columns in order. The identity of the card comes first. */
export const CSV_FIELDS = [
  'index',
  'uuid',
  'name',
  'memory.total',
  'memory.used',
  'utilization.gpu',
  'temperature.gpu',
  'power.draw',
  'power.limit',
  'pci.bus_id',
  'driver_version',
  'mig.mode.current',
  'clocks.current.graphics',
  'clocks.current.memory',
  'pcie.link.gen.current',
  'pcie.link.width.current',
  'ecc.errors.uncorrected.volatile.total',
] as const;

/** A row without these fields identifies no card, so they are never left out. */
const IDENTITY: readonly string[] = ['index', 'uuid', 'name', 'memory.total'];
/** Fields needed for leases, without those that are only displayed. */
export const NEEDED_FIELDS: readonly string[] = CSV_FIELDS.slice(
  0,
  CSV_FIELDS.indexOf('mig.mode.current') + 1,
);

/**
 * Unit of a field without its SI prefix, as the metrics need it. `word` is an enumeration or a hexadecimal number;
 * `signed` may be negative, all others may not.
 */
export type FieldUnit =
  | 'plain'
  | 'signed'
  | 'word'
  | 'mib'
  | 'percent'
  | 'mhz'
  | 'watts'
  | 'watts_per_s'
  | 'us'
  | 'ms'
  | 's';

const ECC_PLACES = [
  ...['device_memory', 'dram', 'register_file', 'l1_cache', 'l2_cache', 'texture_memory'],
  ...['cbu', 'sram', 'total'],
];
const ECC_FIELDS = ['corrected', 'uncorrected'].flatMap((kind) =>
  ['volatile', 'aggregate'].flatMap((span) =>
    ECC_PLACES.map((place) => `ecc.errors.${kind}.${span}.${place}`),
  ),
);
const SRAM = 'ecc.errors.uncorrected.aggregate.sram';

const EVENT_REASONS = 'clocks_event_reasons';
/** Prefix of the same fields in drivers before 535. */
const THROTTLE_REASONS = 'clocks_throttle_reasons';
const REASONS = [
  ...['supported', 'active', 'gpu_idle', 'applications_clocks_setting', 'sw_power_cap'],
  ...['hw_slowdown', 'hw_thermal_slowdown', 'hw_power_brake_slowdown', 'sw_thermal_slowdown'],
  'sync_boost',
];
const COUNTED_REASONS = [
  ...['sw_power_cap', 'sync_boost', 'sw_thermal_slowdown', 'hw_thermal_slowdown'],
  'hw_power_brake_slowdown',
];
const LIMITS = ['power.limit', 'enforced.power.limit', 'power.default_limit'].concat(
  'power.min_limit',
  'power.max_limit',
);
const SMOOTHING = 'power_smoothing';
const PROFILES = [`${SMOOTHING}.curr_profile`, `${SMOOTHING}.admin_override`];

/** Fields with a number or an enumeration, by unit: all those that nvidia_gpu_exporter exports. */
const BY_UNIT: Readonly<Record<FieldUnit, readonly string[]>> = {
  plain: [
    ...['index', 'count', 'driver_version', 'kmd_version', 'serial', 'compute_cap'],
    ...['accounting.buffer_size', 'inforom.oem', 'inforom.ecc', 'inforom.pwr'],
    ...['current', 'gpucurrent', 'max', 'gpumax', 'hostmax'].map((each) => `pcie.link.gen.${each}`),
    ...['pcie.link.width.current', 'pcie.link.width.max'],
    ...['sessionCount', 'averageFps', 'averageLatency'].map((each) => `encoder.stats.${each}`),
    ...ECC_FIELDS,
    ...['volatile', 'aggregate'].flatMap((span) =>
      ['parity', 'secded'].map((code) => `ecc.errors.uncorrected.${span}.sram.${code}`),
    ),
    ...['l2', 'sm', 'mcu', 'pcie', 'other'].map((part) => `${SRAM}.${part}`),
    ...['retired_pages.single_bit_ecc.count', 'retired_pages.double_bit.count'],
    ...['correctable', 'correctable_inactive', 'uncorrectable', 'uncorrectable_inactive']
      .concat(['max', 'high', 'partial', 'low', 'none'].map((bank) => `histogram.${bank}`))
      .map((each) => `remapped_rows.${each}`),
    ...['fabric.cliqueId', 'platform.slot_number', 'platform.tray_index'],
    ...['platform.host_id', 'platform.module_id'],
    ...['priv_level', 'num_preset_profiles', 'active_profile'].map(
      (each) => `${SMOOTHING}.${each}`,
    ),
    ...PROFILES.flatMap((profile) => [
      `${profile}.primary_floor_act_window_multiplier`,
      `${profile}.primary_floor_tar_window_multiplier`,
    ]),
  ],
  signed: ['temperature.gpu', 'temperature.gpu.tlimit', 'temperature.memory'],
  word: [
    ...['pci.domain', 'pci.bus', 'pci.device', 'pci.baseClass', 'pci.subClass'],
    ...['pci.device_id', 'pci.sub_device_id', 'platform.gpu_fabric_guid'],
    ...['display_mode', 'display_attached', 'display_active', 'persistence_mode'],
    ...['accounting.mode', 'pstate', 'compute_mode', 'gpu_recovery_action', 'fabric.state'],
    ...['mig.mode.current', 'mig.mode.pending', 'ecc.mode.current', 'ecc.mode.pending'],
    ...['gsp.mode.current', 'gsp.mode.default', 'c2c.mode', 'power.management'],
    ...['dramEncryption.mode.current', 'dramEncryption.mode.pending'],
    ...[`${SRAM}.thresholdExceeded`, 'retired_pages.pending'],
    ...['remapped_rows.pending', 'remapped_rows.failure'],
    ...[EVENT_REASONS, THROTTLE_REASONS].flatMap((prefix) =>
      REASONS.map((reason) => `${prefix}.${reason}`),
    ),
    ...['enabled', 'delayed_power_smoothing_supported', 'soc_power_smoothing_enabled'].map(
      (each) => `${SMOOTHING}.${each}`,
    ),
    `${SMOOTHING}.imm_ramp_down`,
  ],
  mib: [
    ...['total', 'used', 'free', 'reserved'].map((each) => `memory.${each}`),
    ...['total', 'used', 'free'].map((each) => `protected_memory.${each}`),
  ],
  percent: [
    ...['gpu', 'memory', 'encoder', 'decoder', 'jpeg', 'ofa'].map((each) => `utilization.${each}`),
    ...['fan.speed', 'edpp_multiplier', `${SMOOTHING}.hw_lifetime_remaining_percent`],
    ...[`${SMOOTHING}.max_percent_tmp_floor`, `${SMOOTHING}.min_percent_tmp_floor`],
    ...PROFILES.map((profile) => `${profile}.percent_tmp_floor`),
  ],
  mhz: [
    ...['graphics', 'sm', 'memory', 'video'].map((each) => `clocks.current.${each}`),
    ...['graphics', 'sm', 'memory'].map((each) => `clocks.max.${each}`),
    ...['applications', 'default_applications'].flatMap((kind) => [
      `clocks.${kind}.graphics`,
      `clocks.${kind}.memory`,
    ]),
  ],
  watts: [
    ...['power.draw', 'power.draw.average', 'power.draw.instant', ...LIMITS],
    ...['power.draw.average', 'power.draw.instant', ...LIMITS].map((each) => `module.${each}`),
    ...['current', 'requested', 'default', 'min', 'max'].map((each) => `gpu.base.${each}`),
    ...['tmp_floor', 'tmp_ceil', 'primary_power_floor', 'secondary_power_floor']
      .concat('min_primary_floor_activation_offset', 'min_primary_floor_activation_point')
      .map((each) => `${SMOOTHING}.${each}`),
    ...PROFILES.flatMap((profile) => [
      `${profile}.secondary_power_floor`,
      `${profile}.primary_floor_act_offset`,
    ]),
  ],
  watts_per_s: PROFILES.flatMap((profile) => [
    `${profile}.ramp_up_rate`,
    `${profile}.ramp_down_rate`,
  ]),
  us: COUNTED_REASONS.map((reason) => `clocks_event_reasons_counters.${reason}`),
  ms: [
    `${SMOOTHING}.window_multiplier`,
    ...PROFILES.map((profile) => `${profile}.ramp_down_hysteresis`),
  ],
  s: ['bbx.time_run'],
};

/** Fields that metrics export, with their units. */
export const FIELD_UNITS: readonly (readonly [string, FieldUnit])[] = Object.entries(
  BY_UNIT,
).flatMap(([unit, fields]) => fields.map((field) => [field, unit as FieldUnit] as const));

/** Texts that only label metrics. */
const LABELS = ['vbios_version', 'driver_model.current', 'driver_model.pending'];
export const ALL_FIELDS: readonly string[] = [
  ...new Set([...CSV_FIELDS, ...LABELS, ...FIELD_UNITS.map(([field]) => field)]),
];

export const HELP_ARGS = ['--help-query-gpu'] as const;
export const argsFor = (fields: readonly string[]) =>
  [`--query-gpu=${fields.join(',')}`, '--format=csv,noheader,nounits'] as const;

/** Returns the names that the driver lists, `"name" or "other name"` at the start of a line; null without a list. */
export function fieldsInHelp(stdout: string): ReadonlySet<string> | null {
  const lines = stdout.split('\n').filter((line) => /^"[\w.]+"(?: or "[\w.]+")*\s*$/.test(line));
  const names = lines.flatMap((line) => [...line.matchAll(/"([\w.]+)"/g)].map(([, name]) => name));
  const known = new Set(names.filter((name) => name !== undefined));
  return IDENTITY.every((field) => known.has(field)) ? known : null;
}

const UNKNOWN_FIELD = /(?:field "([\w.]{1,80})" )?is not a valid field to query/i;
export type NvidiaFields = ReturnType<typeof createNvidiaFields>;

/**
 * Determines the fields to query. A driver rejects the whole query if it contains an unknown field. The fields are
 * therefore compared with the driver's list, and a field that the driver rejects nevertheless is left out until the
 * driver version changes.
 */
export function createNvidiaFields() {
  let supported: ReadonlySet<string> | null = null;
  let rejected = new Set<string>();
  let fields = usableFields(supported, rejected);
  /** Version of the driver that answered; null before the first answer. */
  let version: string | null = null;

  return {
    /** Fields for the next query. */
    current: () => fields,
    /** True until a driver has answered or listed its fields: the list should be read before the next query. */
    needsHelp: () => supported === null && version === null,
    recordHelp(stdout: string): void {
      supported = fieldsInHelp(stdout);
      if (supported !== null) fields = usableFields(supported, rejected);
    },
    /** Fields for a query whose failure must not cost the leases: only those that leases need. */
    needed: () => NEEDED_FIELDS.filter((field) => fields.includes(field)),
    /**
     * Returns true if the output of a query for `queried` rejects a field and the caller should retry with fewer
     * fields.
     */
    isRejected(output: string, queried: readonly string[]): boolean {
      const match = UNKNOWN_FIELD.exec(output);
      if (match === null) return false;
      const name = match[1];
      if (name === undefined || !queried.includes(name) || IDENTITY.includes(name)) {
        fields = this.needed();
        return fields.length < queried.length;
      }
      rejected.add(name);
      fields = usableFields(supported, rejected);
      return true;
    },
    /** Starts again with all fields when the driver version changes. */
    recordVersion(driverVersion: string | null): void {
      if (driverVersion === null || driverVersion === version) return;
      const isOther = version !== null;
      version = isOther ? null : driverVersion;
      if (!isOther) return;
      supported = null;
      rejected = new Set();
      fields = usableFields(supported, rejected);
    },
  };
}

function usableFields(
  supported: ReadonlySet<string> | null,
  rejected: ReadonlySet<string>,
): readonly string[] {
  const isUsable = (field: string) => !rejected.has(field) && (supported?.has(field) ?? true);
  const isReplaced = (field: string) =>
    field.startsWith(THROTTLE_REASONS) && isUsable(field.replace(THROTTLE_REASONS, EVENT_REASONS));
  return ALL_FIELDS.filter((field) => isUsable(field) && !isReplaced(field));
}
