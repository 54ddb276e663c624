/** Hardware of the host as the package systeminformation reports it: read once, in a separate process. */
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { MAX_NAME_CHARS } from '#shared/api/agent/bounds.ts';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { COMPILE_CACHE } from '#shared/runtime/node-process.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';

const Text = z.string().max(10_000).nullish();
const Count = z.number().nullish();

/** Output of `hardware-program.ts`. Texts and numbers may be empty, 0 or absent where the host reports nothing. */
const RawHardware = z.object({
  vendor: Text,
  product: Text,
  board: Text,
  firmware: Text,
  virtual: z.boolean().nullish(),
  cpuModel: Text,
  sockets: Count,
  physicalCores: Count,
  memoryType: Text,
  memoryMhz: Count,
  osName: Text,
});
export type RawHardware = z.output<typeof RawHardware>;

/** `cpuModel` and `osName` are used where the kernel has no name; empty if unknown. */
export type HardwareFacts = {
  hardware: NonNullable<Inventory['hardware']>;
  cpuModel: string;
  osName: string;
};

export type ReadHardware = () => Promise<HardwareFacts>;

/** Environment of the program. PATH includes the folders of dmidecode and lscpu. */
const ENVIRONMENT = {
  PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
  NODE_COMPILE_CACHE: COMPILE_CACHE,
};
const PROGRAM = fileURLToPath(new URL('./hardware-program.ts', import.meta.url));
/**
 * Time limit of the program. Long, because dmidecode and lscpu are slow on large or busy hosts, and nothing
 * waits for the result.
 */
const TIMEOUT_MS = 60_000;
const MAX_OUTPUT_BYTES = 65_536;

/** Rejects if the program fails. */
export function createReadHardware(runCommand: RunCommand): ReadHardware {
  return async () => {
    const { stdout, exitCode, stderr } = await runCommand(process.execPath, [PROGRAM], {
      timeoutMs: TIMEOUT_MS,
      maxOutputBytes: MAX_OUTPUT_BYTES,
      env: ENVIRONMENT,
    });
    if (exitCode !== 0) throw new Error(`the hardware cannot be read: ${stderr.slice(0, 200)}`);
    return hardwareFrom(JSON.parse(stdout));
  };
}

/** Firmware of many boards contains such texts instead of a name. */
const NO_NAME =
  /^(?:|-|unknown|none|n\/a|default string|to be filled by o\.?e\.?m\.?|not specified)$/i;

/** Pure. Throws if the value is not the program's output. */
export function hardwareFrom(output: unknown): HardwareFacts {
  const raw = RawHardware.parse(output);
  return {
    hardware: {
      vendor: nameOf(raw.vendor),
      product: nameOf(raw.product),
      board: nameOf(raw.board),
      firmware: nameOf(raw.firmware),
      virtual: raw.virtual ?? null,
      sockets: amountOf(raw.sockets),
      physical_cores: amountOf(raw.physicalCores),
      memory_type: nameOf(raw.memoryType),
      memory_mhz: amountOf(raw.memoryMhz),
    },
    cpuModel: nameOf(raw.cpuModel) ?? '',
    osName: nameOf(raw.osName) ?? '',
  };
}

function nameOf(text: string | null | undefined): string | null {
  const name = (text ?? '').trim().replace(/\s+/g, ' ').slice(0, MAX_NAME_CHARS);
  return NO_NAME.test(name) ? null : name;
}

function amountOf(count: number | null | undefined): number | null {
  return count !== null && count !== undefined && count > 0 ? Math.round(count) : null;
}

/**
 * Delay of the first reading after the start, ms: the program takes seconds of processor time, which a
 * starting agent needs for its pods.
 */
const FIRST_READ_MS = 30_000;
const RETRY_MS = 3_600_000;

/**
 * Reads in the background, half a minute after the start: returns null until the facts are known. Tries again an hour
 * after a failure.
 */
export function createHardware(clock: Clock, read: ReadHardware): () => HardwareFacts | null {
  let facts: HardwareFacts | null = null;
  let nextMs = clock.monotonicMs() + FIRST_READ_MS;
  return () => {
    if (facts === null && clock.monotonicMs() >= nextMs) {
      nextMs = clock.monotonicMs() + RETRY_MS;
      read().then(
        (found) => {
          facts = found;
        },
        () => undefined,
      );
    }
    return facts;
  };
}
