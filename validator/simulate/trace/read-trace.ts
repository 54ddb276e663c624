/** Reads a file of a public cluster trace, whose format its beginning shows. */
import { closeSync, openSync, readSync } from 'node:fs';
import { ConfigError } from '#shared/runtime/config.ts';
import { fileProblem } from '#shared/runtime/files.ts';
import { CSV_FORMATS, type CsvFormat } from './csv-formats.ts';
import { csvRecords } from './csv-records.ts';
import { phillyJobs } from './philly-jobs.ts';
import { TraceError, type TraceRow } from './trace-rows.ts';

const HEAD_BYTES = 4_096;

/** Yields the rows in the order of the file. Throws ConfigError that names the file, the line and the column. */
export async function* readTrace(file: string): AsyncGenerator<TraceRow> {
  const head = headOf(file);
  try {
    if (head.trimStart().startsWith('[')) yield* phillyJobs(file);
    else yield* csvRows(file, formatOf(file, head));
  } catch (error) {
    if (!(error instanceof TraceError)) throw error;
    throw new ConfigError(`--trace ${error.message}`, { cause: error });
  }
}

async function* csvRows(file: string, format: CsvFormat): AsyncGenerator<TraceRow> {
  for await (const { line, values } of csvRecords(file)) yield format.rowOf(values, { file, line });
}

function headOf(file: string): string {
  try {
    const descriptor = openSync(file, 'r');
    try {
      const bytes = Buffer.alloc(HEAD_BYTES);
      return bytes.toString('utf8', 0, readSync(descriptor, bytes));
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    throw new ConfigError(`--trace ${fileProblem(file, error)}`, { cause: error });
  }
}

function formatOf(file: string, head: string): CsvFormat {
  const [header = ''] = head.replace('\uFEFF', '').split(/\r?\n/, 1);
  const columns = header.split(',').map((name) => name.trim());
  const format = CSV_FORMATS.find((known) => known.columns.every((name) => columns.includes(name)));
  if (format !== undefined) return format;
  const known = CSV_FORMATS.map((each) => `  ${each.name}: ${each.columns.join(', ')}`);
  throw new ConfigError(
    `--trace ${file}:1: these columns belong to no known trace. A trace is a JSON array of Philly’s jobs, or has the columns of:\n${known.join('\n')}`,
  );
}
