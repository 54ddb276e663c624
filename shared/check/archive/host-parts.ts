/** Parts of every archive: versions, journal, units, logs, metrics. */
import { open } from 'node:fs/promises';
import { cpus, loadavg, release, totalmem, uptime } from 'node:os';
import { basename } from 'node:path';
import { boundedText } from '../../http/bounded-text.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { RunCommand } from '../../runtime/run-command.ts';
import { VERSION } from '../../runtime/version.ts';
import { createSecureTransport, PLAIN_TRANSPORT } from '../../tls/transport.ts';
import type { Part } from './archive.ts';

const COMMAND = { timeoutMs: 15_000, maxOutputBytes: 4 * 1024 * 1024 };
const JOURNAL_LINES = '5000';
const LOG_BYTES = 1024 * 1024;
const METRICS_BYTES = 2 * 1024 * 1024;
const METRICS_MS = 10_000;
const UNIT_PROPERTIES =
  'Id,ActiveState,SubState,Result,ExecMainStatus,ExecMainStartTimestamp,NRestarts,MemoryCurrent,TasksCurrent,StatusText,UnitFileState';

/** The output of a program, with its exit status unless that is 0. */
export function commandPart(
  name: string,
  runCommand: RunCommand,
  file: string,
  ...args: string[]
): Part {
  return { name, collect: () => outputOf(runCommand, file, ...args) };
}

async function outputOf(runCommand: RunCommand, file: string, ...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr, ended } = await runCommand(file, args, COMMAND);
  const status = exitCode === 0 ? '' : `(ended with ${ended ?? exitCode})\n`;
  return stdout + stderr + status;
}

/** Versions of podwright, Node, the kernel and `programs`. */
export function versionsPart(
  runCommand: RunCommand,
  programs: readonly (readonly [file: string, ...args: string[]])[],
): Part {
  return {
    name: 'versions.txt',
    async collect() {
      const lines = [
        `podwright ${VERSION}, node ${process.version}, ${process.platform} ${process.arch}`,
        `kernel ${release()}, up ${Math.round(uptime())} s, load ${loadavg().join(' ')}`,
        `${cpus().length} processors, ${totalmem()} bytes of memory`,
      ];
      const outputs = programs.map(([file, ...args]) =>
        outputOf(runCommand, file, ...args).catch((error: Error) => `${file}: ${error.message}\n`),
      );
      return `${lines.join('\n')}\n${(await Promise.all(outputs)).join('')}`;
    },
  };
}

/** The newest lines of the units' journals. */
export function journalPart(runCommand: RunCommand, units: readonly string[]): Part {
  const bounds = ['--lines', JOURNAL_LINES, '--no-pager', '--output', 'short-iso'];
  const args = [...units.flatMap((unit) => ['--unit', unit]), ...bounds];
  return commandPart('journal.txt', runCommand, 'journalctl', ...args);
}

/** The part without its text. `problem`: why the secrets that it may contain cannot be redacted. */
export function leftOut({ name }: Part, problem: string): Part {
  const reason = `left out, because secrets could not be redacted: ${problem}\n`;
  return { name, collect: async () => reason };
}

/** States of the units. */
export function unitsPart(runCommand: RunCommand, units: readonly string[]): Part {
  const args = ['show', '--property', UNIT_PROPERTIES, ...units];
  return commandPart('units.txt', runCommand, 'systemctl', ...args);
}

/** The ends of log files. */
export function logParts(paths: readonly string[]): Part[] {
  return paths.map((path, index) => ({
    name: `log-${index + 1}-${basename(path)}.txt`,
    async collect() {
      const file = await open(path, 'r');
      try {
        const { size } = await file.stat();
        const position = Math.max(0, size - LOG_BYTES);
        const buffer = Buffer.alloc(Math.min(size, LOG_BYTES));
        const { bytesRead } = await file.read(buffer, 0, buffer.length, position);
        const text = buffer.toString('utf8', 0, bytesRead);
        // The first line may be cut within a secret, which would then not be recognised.
        return position === 0 ? text : text.slice(text.indexOf('\n') + 1);
      } finally {
        await file.close();
      }
    },
  }));
}

/** A scrape of a listener on this host. Accepts any certificate. */
export function metricsPart(clock: Clock, url: string): Part {
  return {
    name: 'metrics.txt',
    async collect() {
      const transport = url.startsWith('https:')
        ? createSecureTransport({ trust: 'anybody', clock })
        : PLAIN_TRANSPORT;
      try {
        const signal = clock.deadline(METRICS_MS);
        const init = { method: 'GET', headers: {}, signal };
        return await boundedText(await transport.fetch(new URL(url), init), METRICS_BYTES);
      } finally {
        transport.close();
      }
    },
  };
}
