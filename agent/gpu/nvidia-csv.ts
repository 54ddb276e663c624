/** Reads `nvidia-smi --query-gpu=… --format=csv,noheader,nounits`. Pure, and tolerant of any text. */
import type { GpuFigures } from './gpu-driver.ts';
import { amountOf, countOf, numberOf, textOf } from './nvidia-value.ts';

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

const argsFor = (fields: readonly string[]) =>
  [`--query-gpu=${fields.join(',')}`, '--format=csv,noheader,nounits'] as const;
export const CSV_ARGS = argsFor(CSV_FIELDS);

const NEEDED = CSV_FIELDS.slice(0, CSV_FIELDS.indexOf('mig.mode.current') + 1);
/** Without the figures that are only shown: for a driver that refuses a query whose fields it does not all know. */
export const NEEDED_CSV_ARGS = argsFor(NEEDED);
export const UNKNOWN_FIELD = /is not a valid field to query/i;

/** A card that answered, whole or split by MIG. */
export type GpuCard = { index: number; uuid: string; name: string; pciBusId: string | null };

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

/** `complete` false: the last line may be cut anywhere and does not count unless it ended. */
export function parseGpuCsv(stdout: string, complete = true): CsvReading {
  const end = complete ? stdout.length : stdout.lastIndexOf('\n') + 1;
  const lines = stdout.slice(0, end).split('\n');
  const reading: CsvReading = {
    ...{ devices: [], cards: [], splitCards: [] },
    ...{ driverVersion: null, rows: 0, problems: [] },
  };
  for (const line of lines) {
    const text = line.trim();
    if (text === '') continue;
    const outcome = parseRow(text);
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

function parseRow(line: string): Row {
  const cells = line.split(',');
  const cell = (field: (typeof CSV_FIELDS)[number]) => cells[CSV_FIELDS.indexOf(field)];
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
  const card = { index, uuid, name, pciBusId };
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

function linkOf(generation: number | null, width: number | null): string | null {
  return generation === null || width === null ? null : `PCIe ${generation} x${width}`;
}
