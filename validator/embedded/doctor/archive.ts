/** The diagnosis archive of a local marketplace: the archives of its processes, each in a folder with its name. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Part, readArchive } from '#shared/check/archive/archive.ts';
import type { Redact } from '#shared/check/archive/redact.ts';
import { type Finding, systemDoctorPorts, textReport } from '#shared/check/doctor.ts';
import type { Environment } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { agentArguments } from '#shared/runtime/node-process.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { archiveCentral } from '../../central/doctor/archive.ts';
import { archiveValidator } from '../../doctor/archive.ts';
import { agentNames, type Home } from '../home.ts';
import { agentEnvironment, centralVariables, read } from './process-variables.ts';

/** Timeout of an agent's archive; it exceeds the deadlines of the archive's parts. */
const LIMITS = { timeoutMs: 180_000, maxOutputBytes: 1_000_000 };
/**
 * Parts of the processes' archives that are left out: one report about all processes replaces their reports, and
 * processes of `npm start` have no units and no journal.
 */
const NOT_LOCAL: ReadonlySet<string> = new Set(['doctor.txt', 'units.txt', 'journal.txt']);

/** `examine` runs the doctor; true permits it to start a container. */
export async function archiveMarketplace(
  { home, environment }: { home: Home; environment: Environment },
  logs: readonly string[],
  examine: (container: boolean) => Promise<Finding[]>,
): Promise<{ parts: readonly Part[]; redact: Redact }> {
  // One process runs the central API and the validator, and writes the log of both.
  const ownLogs = [home.log('marketplace'), ...logs].filter(existsSync);
  const none = async () => [];
  const central = await archiveCentral(
    systemDoctorPorts(centralVariables(home, environment)),
    ownLogs,
    none,
  );
  const validator = await archiveValidator(
    systemDoctorPorts({ ...read(home, 'validator') }),
    [],
    none,
  );
  const agents = await Promise.all(
    agentNames(home).map((name) => agentParts(home, name, environment)),
  );
  return {
    parts: [
      { name: 'doctor.txt', collect: async () => textReport(await examine(false), false) },
      ...inFolder('central', central.parts),
      ...inFolder('validator', validator.parts),
      ...agents.flat(),
    ],
    redact: (text) => validator.redact(central.redact(text)),
  };
}

function inFolder(name: string, parts: readonly Part[]): Part[] {
  return parts
    .filter((part) => !NOT_LOCAL.has(part.name))
    .map((part) => ({ ...part, name: `${name}/${part.name}` }));
}

/** Runs the archive of an agent as a process with the agent's variables, which redacts the agent's secrets. */
async function agentParts(home: Home, name: string, environment: Environment): Promise<Part[]> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-archive-'));
  const path = join(folder, `${name}.tar.gz`);
  const logs = [home.log(name), home.log(name.replace('agent', 'ssh'))].filter(existsSync);
  const args = ['doctor', '--archive', path, ...logs.flatMap((log) => ['--log', log])];
  try {
    const env = agentEnvironment(read(home, name), environment);
    const run = await runCommand(process.execPath, agentArguments(...args), { ...LIMITS, env });
    if (run.exitCode !== 0) throw new Error(run.stderr.trim() || `it ended: ${run.ended}`);
    const files = await readArchive(path);
    return inFolder(
      name,
      files.map((file) => ({ name: file.name, collect: async () => file.text })),
    );
  } catch (error) {
    const problem = `not available: ${messageOf(error)}\n`;
    return [{ name: `${name}.txt`, collect: async () => problem }];
  } finally {
    rmSync(folder, { recursive: true });
  }
}
