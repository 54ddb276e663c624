/** Reads `nvidia-smi --query-gpu=… --format=csv,noheader,nounits`. Pure, and tolerant of any text. */
import type { GpuCard, GpuFigures } from './gpu-driver.ts';
import { CSV_FIELDS } from './nvidia-fields.ts';
import { amountOf, countOf, numberOf, textOf } from './nvidia-value.ts';

export type CsvReading = {
  /** The whole cards. */
  devices: GpuFigures[];
  /** All that answered; those in `splitCards` are offered in parts only. */
  cards: GpuCard[];
  splitCards: GpuCard[];
  driverVersion: string | null;
  /** Rows that were GPUs, usable or not: above 0, the driver did answer. */
  rows: number;
  /** Lines that are no usable GPU, in words: messages, lost GPUs, rows without identity. */
  problems: string[];
};

const MAX_DEVICES = 64;
const MAX_PROBLEMS = 8;
const MAX_PROBLEM_CHARS = 200;

/**
 * `complete` false: the last line may be cut anywhere and does not count unless it ended. `fields` are those that
 * were asked for, in their order.
 */
export function parseGpuCsv(
  stdout: string,
  complete = true,
  fields: readonly string[] = CSV_FIELDS,
): CsvReading {
  const end = complete ? stdout.length : stdout.lastIndexOf('\n') + 1;
  const lines = stdout.slice(0, end).split('\n');
  const reading: CsvReading = {
    ...{ devices: [], cards: [], splitCards: [] },
    ...{ driverVersion: null, rows: 0, problems: [] },
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
  /** Null, with a problem, when the line is no GPU that can be given to a pod. */
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
  // A card that fell off the bus still has a row, with no values in it. It must not be rented out.
  if (name === null || memory === null) {
    const problem = `${uuid} gives neither name nor memory size`;
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
    // Told by another query.
    processes: null,
    power_default_limit_w: null,
    mig: null,
  };
  return { uuid, driverVersion, card, device, problem: null };
}

/** Those that the driver has a value for. */
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
