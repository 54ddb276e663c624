/** Parses the output of `nvidia-smi --query-gpu=… --format=csv,noheader,nounits`. Pure; accepts any text. */
import type { GpuCard, GpuFigures } from '../gpu-driver.ts';
import { CSV_FIELDS } from './fields.ts';
import { amountOf, countOf, numberOf, textOf, versionOf } from './values.ts';

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

/** Fields that drivers support only in part. */
type ShownField =
  | 'enforced.power.limit'
  | 'power.max_limit'
  | 'power.default_limit'
  | 'gpu_recovery_action';

type Row = {
  uuid: string | null;
  driverVersion: string | null;
  /** Null, with a problem, if the line is not a usable GPU. */
  card: GpuCard | null;
  /** Null for a card that is split by MIG. */
  device: GpuFigures | null;
  problem: string | null;
};

const NO_CARD = { uuid: null, driverVersion: null, card: null, device: null };

function parseRow(line: string, fields: readonly string[]): Row {
  const cells = line.split(',');
  const cell = (field: (typeof CSV_FIELDS)[number] | ShownField) => cells[fields.indexOf(field)];
  const uuid = textOf(cell('uuid'));
  const index = countOf(cell('index'));
  if (index === null || uuid === null || !/^GPU-[0-9a-fA-F-]{36}$/.test(uuid)) {
    return { ...NO_CARD, problem: line.slice(0, MAX_PROBLEM_CHARS) };
  }
  // Values of a row with more or fewer cells than fields cannot be matched to the fields.
  if (cells.length !== fields.length) {
    const problem = `${uuid} has a row of ${cells.length} values instead of ${fields.length}`;
    return { ...NO_CARD, problem };
  }
  const driverVersion = versionOf(cell('driver_version'));
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
    power_enforced_limit_w: amountOf(cell('enforced.power.limit')),
    power_max_limit_w: amountOf(cell('power.max_limit')),
    power_default_limit_w: amountOf(cell('power.default_limit')),
    pci_bus_id: pciBusId,
    graphics_clock_mhz: amountOf(cell('clocks.current.graphics')),
    memory_clock_mhz: amountOf(cell('clocks.current.memory')),
    pcie_link: linkOf(
      countOf(cell('pcie.link.gen.current')),
      countOf(cell('pcie.link.width.current')),
    ),
    ecc_errors: countOf(cell('ecc.errors.uncorrected.volatile.total')),
    recovery_action: textOf(cell('gpu_recovery_action')),
    // Set from the XML document.
    processes: null,
    compute_processes: null,
    graphics_processes: null,
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
