/** Which fields nvidia-smi is asked for, and how that gets less with a driver that does not know them all. */

/** The column order. Identity comes first: a row that breaks off keeps what a lease needs. */
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

/** Without the figures that are only shown. */
export const NEEDED_FIELDS: readonly string[] = CSV_FIELDS.slice(
  0,
  CSV_FIELDS.indexOf('mig.mode.current') + 1,
);

const REASONS = [
  'active',
  'gpu_idle',
  'applications_clocks_setting',
  'sw_power_cap',
  'hw_slowdown',
  'hw_thermal_slowdown',
  'hw_power_brake_slowdown',
  'sw_thermal_slowdown',
  'sync_boost',
] as const;
const EVENT_REASONS = 'clocks_event_reasons';
/** What drivers before 535 call them. */
const THROTTLE_REASONS = 'clocks_throttle_reasons';

/** For metrics alone. */
export const METRIC_FIELDS: readonly string[] = [
  ...['count', 'vbios_version', 'compute_cap', 'driver_model.current', 'driver_model.pending'],
  ...['pstate', 'compute_mode', 'fan.speed', 'temperature.memory', 'gpu_recovery_action'],
  ...['utilization.memory', 'utilization.encoder', 'utilization.decoder'],
  ...['memory.free', 'memory.reserved', 'power.default_limit', 'enforced.power.limit'],
  ...['clocks.current.sm', 'clocks.current.video', 'clocks.max.graphics', 'clocks.max.memory'],
  ...['clocks.max.sm', 'ecc.errors.uncorrected.aggregate.total'],
  ...['ecc.errors.corrected.volatile.total', 'ecc.errors.corrected.aggregate.total'],
  ...['remapped_rows.correctable', 'remapped_rows.uncorrectable'],
  ...['remapped_rows.pending', 'remapped_rows.failure', 'fabric.state'],
  ...REASONS.map((reason) => `${EVENT_REASONS}.${reason}`),
];
const ALL_FIELDS: readonly string[] = [...CSV_FIELDS, ...METRIC_FIELDS];

/** Known to a driver together, or not at all. */
const GROUPS = [EVENT_REASONS, THROTTLE_REASONS, 'remapped_rows', 'driver_model'];
const UNKNOWN_FIELD = /(?:field "([\w.]{1,80})" )?is not a valid field to query/i;
/** Runs with ever fewer fields; then it is done with those that are needed. */
const MAX_REFUSALS = 12;

export const argsFor = (fields: readonly string[]) =>
  [`--query-gpu=${fields.join(',')}`, '--format=csv,noheader,nounits'] as const;

export type NvidiaFields = ReturnType<typeof createNvidiaFields>;

/** A driver that does not know one field of a query refuses it whole. */
export function createNvidiaFields() {
  let fields = ALL_FIELDS;
  let refusals = 0;
  /** Of the driver that refused a field; null while that is not known. */
  let refusedBy: string | null = null;

  function without(unknown: string | undefined): readonly string[] {
    const group = GROUPS.find((name) => unknown?.startsWith(`${name}.`));
    const left = fields.filter((field) =>
      group === undefined ? field !== unknown : !field.startsWith(`${group}.`),
    );
    const isNeeded = unknown === undefined || NEEDED_FIELDS.includes(unknown);
    if (isNeeded || left.length === fields.length || refusals > MAX_REFUSALS) return NEEDED_FIELDS;
    const others = REASONS.map((reason) => `${THROTTLE_REASONS}.${reason}`);
    return group === EVENT_REASONS ? [...left, ...others] : left;
  }

  return {
    /** To be asked for now. */
    wanted: () => fields,
    /** Whether the words of a run that asked for `asked` refuse a field, and there is a shorter query to try. */
    isRefused(words: string, asked: readonly string[]): boolean {
      const match = UNKNOWN_FIELD.exec(words);
      if (match === null || asked === NEEDED_FIELDS) return false;
      // Another reader of the same run has seen to it.
      if (asked !== fields) return true;
      refusals += 1;
      fields = without(match[1]);
      return true;
    },
    /** After an update the driver is asked for every field again, from the next reading on. */
    noteVersion(driverVersion: string | null): void {
      if (fields === ALL_FIELDS || driverVersion === null) return;
      const isOther = refusedBy !== null && refusedBy !== driverVersion;
      refusedBy = isOther ? null : driverVersion;
      if (!isOther) return;
      fields = ALL_FIELDS;
      refusals = 0;
    },
  };
}
