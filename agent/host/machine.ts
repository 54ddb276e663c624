/**
 * Detects a second agent with the same executor id: on this machine by a lock, on another machine by the ids of the
 * machine that last used the home. Two agents with copies of one home would each start, restart and remove the same pods.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigError } from '#shared/runtime/config.ts';
import { replacePrivateFile } from '#shared/runtime/files.ts';
import type { Random } from '#shared/runtime/random.ts';

/** Id of the operating system and of the hardware; null if it cannot be read. */
const MachineIds = z.object({ system: z.string().nullable(), hardware: z.string().nullable() });
export type MachineIds = z.output<typeof MachineIds>;

const SYSTEM_ID = '/etc/machine-id';
/** Only root can read it. */
const HARDWARE_ID = '/sys/class/dmi/id/product_uuid';
const FILE = 'machine.json';

export function readMachineIds(): MachineIds {
  return { system: lineOf(SYSTEM_ID), hardware: lineOf(HARDWARE_ID) };
}

function lineOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim() || null;
  } catch {
    return null;
  }
}

/**
 * Describes that another machine last used the home; null if it was this one or that is unknown. Both ids must differ: a
 * system that was installed again has another id, and so has one that makes an id at each boot.
 */
export function otherMachineText(home: string, present: MachineIds): string | null {
  const path = join(home, FILE);
  const found = idsIn(path);
  const differs = (part: keyof MachineIds) =>
    found !== null &&
    found[part] !== null &&
    present[part] !== null &&
    found[part] !== present[part];
  if (!differs('system') || !differs('hardware')) return null;
  return (
    `${home} was last used on another machine. If both machines use it, every pod runs twice. ` +
    `If this machine replaces the other one, stop the agent there, delete ${path} and start again; ` +
    'if it is a new node, begin with an empty AGENT_HOME.'
  );
}

/** Null if the file is missing or damaged. */
function idsIn(path: string): MachineIds | null {
  try {
    return MachineIds.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return null;
  }
}

/**
 * Records this machine in the home. Throws ConfigError if another machine last used the home and it has pods, of which
 * this machine would start a second container.
 */
export function claimHome(
  home: string,
  options: { present: MachineIds; hasPods(): boolean; random: Random },
): void {
  const other = otherMachineText(home, options.present);
  if (other !== null && options.hasPods()) throw new ConfigError(other);
  replacePrivateFile(join(home, FILE), `${JSON.stringify(options.present)}\n`, options.random);
}

/**
 * Locks the executor id on this machine until the process ends. Rejects if another agent has it. The name is in the
 * kernel's abstract namespace, so that no file remains; programs in another network namespace have other names.
 */
export function lockExecutor(executorId: string): Promise<{ close(): void }> {
  const holder = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    holder.once('error', (cause) => {
      const message = `another agent with AGENT_EXECUTOR_ID ${executorId} runs on this machine, with another AGENT_HOME: stop it first. Two agents with one id would both manage the same pods`;
      reject(new Error(message, { cause }));
    });
    holder.listen(`\0podwright-agent-${executorId}`, () => {
      holder.unref();
      resolve({ close: () => void holder.close() });
    });
  });
}
