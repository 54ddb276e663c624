/** Queries and parses `nvidia-smi --query-gpu=… --format=csv,noheader,nounits`. Pure; accepts any text. */
import type { GpuCard, GpuFigures } from '../gpu-driver.ts';
import { amountOf, countOf, numberOf, textOf } from './values.ts';

/** Columns in order. Identity comes first, so that a truncated row still has what a lease needs. */
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

/** Fields needed for leases, without those that are only displayed. */
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
/** Prefix of these fields in drivers before 535. */
const THROTTLE_REASONS = 'clocks_throttle_reasons';

/** Fields used only for metrics. */
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

/** Prefixes of fields that a driver supports together or not at all. */
const GROUPS = [EVENT_REASONS, THROTTLE_REASONS, 'remapped_rows', 'driver_model'];
const UNKNOWN_FIELD = /(?:field "([\w.]{1,80})" )?is not a valid field to query/i;
/** Maximum number of retries, each with fewer fields; after that only the needed fields are queried. */
const MAX_REJECTIONS = 12;

export const argsFor = (fields: readonly string[]) =>
  [`--query-gpu=${fields.join(',')}`, '--format=csv,noheader,nounits'] as const;

export type NvidiaFields = ReturnType<typeof createNvidiaFields>;

/**
 * Determines the fields to query. A driver rejects the whole query if it contains an unknown field; that field and its
 * group are then removed.
 */
export function createNvidiaFields() {
  let fields = ALL_FIELDS;
  let rejections = 0;
  /** Version of the driver that rejected a field; null while unknown. */
  let rejectedBy: string | null = null;

  function without(unknown: string | undefined): readonly string[] {
    const group = GROUPS.find((name) => unknown?.startsWith(`${name}.`));
    const left = fields.filter((field) =>
      group === undefined ? field !== unknown : !field.startsWith(`${group}.`),
    );
    const isNeeded = unknown === undefined || NEEDED_FIELDS.includes(unknown);
    if (isNeeded || left.length === fields.length || rejections > MAX_REJECTIONS)
      return NEEDED_FIELDS;
    const others = REASONS.map((reason) => `${THROTTLE_REASONS}.${reason}`);
    return group === EVENT_REASONS ? [...left, ...others] : left;
  }

  return {
    /** Fields for the next query. */
    current: () => fields,
    /**
     * Returns true if the output of a query for `queried` rejects a field and the caller should retry with `current()`.
     */
    isRejected(output: string, queried: readonly string[]): boolean {
      const match = UNKNOWN_FIELD.exec(output);
      if (match === null || queried === NEEDED_FIELDS) return false;
      // A concurrent reader of the same run has already removed the field.
      if (queried !== fields) return true;
      rejections += 1;
      fields = without(match[1]);
      return true;
    },
    /** Resets to all fields when the driver version changes. */
    recordVersion(driverVersion: string | null): void {
      if (fields === ALL_FIELDS || driverVersion === null) return;
      const isOther = rejectedBy !== null && rejectedBy !== driverVersion;
      rejectedBy = isOther ? null : driverVersion;
      if (!isOther) return;
      fields = ALL_FIELDS;
      rejections = 0;
    },
  };
}

export type CsvReading = {
  /** Whole cards. */
  devices: GpuFigures[];
  /** All cards that answered; those in `splitCards` are offered only as MIG devices. */
  cards: GpuCard[];
  splitCards: GpuCard[];
  driverVersion: string | null;
  /** Number of rows with a GPU, usable or not; above 0 if the driver answered. */
  rows: number;
  /** Lines without a usable GPU: messages, lost GPUs, rows without identity. */
  problems: string[];
};

const MAX_DEVICES = 64;
const MAX_PROBLEMS = 8;
const MAX_PROBLEM_CHARS = 200;

/**
 * If `complete` is false, a last line without newline is ignored. `fields` are the queried fields in order.
 */
export function parseGpuCsv(
  stdout: string,
  complete = true,
  fields: readonly string[] = CSV_FIELDS,
): CsvReading {
  const end = complete ? stdout.length : stdout.lastIndexOf('\n') + 1;
  const lines = stdout.slice(0, end).split('\n');
  const reading: CsvReading = {
    devices: [],
    cards: [],
    splitCards: [],
    driverVersion: null,
    rows: 0,
    problems: [],
  };
  for (const line of lines) {
    const text = line.trim();
    if (text === '') continue;
    const outcome = parseRow(text, fields);
    if (outcome.problem !== null && reading.problems.length < MAX_PROBLEMS) {
      reading.problems.push(outcome.problem);
    }
    if (outcome.uuid === null) continue;
    reading.rows += 1;
    reading.driverVersion ??= outcome.driverVersion;
    const { card, device } = outcome;
    const known = reading.cards.some(({ uuid }) => uuid === outcome.uuid);
    if (card === null || known || reading.cards.length >= MAX_DEVICES) continue;
    reading.cards.push(card);
    if (device === null) reading.splitCards.push(card);
    else reading.devices.push(device);
  }
  return reading;
}

type Row = {
  uuid: string | null;
  driverVersion: string | null;
  /** Null, with a problem, if the line is not a usable GPU. */
  card: GpuCard | null;
  /** Null for a card that is split by MIG. */
  device: GpuFigures | null;
  problem: string | null;
};

function parseRow(line: string, fields: readonly string[]): Row {
  const cells = line.split(',');
  const cell = (field: (typeof CSV_FIELDS)[number]) => cells[fields.indexOf(field)];
  const uuid = textOf(cell('uuid'));
  const index = countOf(cell('index'));
  if (index === null || uuid === null || !/^GPU-[0-9a-fA-F-]{36}$/.test(uuid)) {
    const problem = line.slice(0, MAX_PROBLEM_CHARS);
    return { uuid: null, driverVersion: null, card: null, device: null, problem };
  }
  const driverVersion = textOf(cell('driver_version'));
  const name = textOf(cell('name'));
  const memory = countOf(cell('memory.total'));
  // A card that fell off the bus still has a row, but without values. It must not be rented out.
  if (name === null || memory === null) {
    const problem = `${uuid} reports neither name nor memory size`;
    return { uuid, driverVersion, card: null, device: null, problem };
  }
  const pciBusId = textOf(cell('pci.bus_id'));
  const card = { index, uuid, name, pciBusId, values: valuesOf(fields, cells) };
  if (textOf(cell('mig.mode.current')) === 'Enabled') {
    return { uuid, driverVersion, card, device: null, problem: null };
  }
  const device = {
    index,
    uuid,
    name,
    memory_total_mib: memory,
    memory_used_mib: countOf(cell('memory.used')),
    utilization_percent: amountOf(cell('utilization.gpu')),
    temperature_c: numberOf(cell('temperature.gpu')),
    power_draw_w: amountOf(cell('power.draw')),
    power_limit_w: amountOf(cell('power.limit')),
    pci_bus_id: pciBusId,
    graphics_clock_mhz: amountOf(cell('clocks.current.graphics')),
    memory_clock_mhz: amountOf(cell('clocks.current.memory')),
    pcie_link: linkOf(
      countOf(cell('pcie.link.gen.current')),
      countOf(cell('pcie.link.width.current')),
    ),
    ecc_errors: countOf(cell('ecc.errors.uncorrected.volatile.total')),
    // Set from the XML document.
    processes: null,
    power_default_limit_w: null,
    mig: null,
  };
  return { uuid, driverVersion, card, device, problem: null };
}

/** Returns the fields that have a value. */
function valuesOf(fields: readonly string[], cells: readonly string[]): Map<string, string> {
  const values = new Map<string, string>();
  for (const [place, field] of fields.entries()) {
    const text = textOf(cells[place]);
    if (text !== null) values.set(field, text);
  }
  return values;
}

function linkOf(generation: number | null, width: number | null): string | null {
  return generation === null || width === null ? null : `PCIe ${generation} x${width}`;
}
