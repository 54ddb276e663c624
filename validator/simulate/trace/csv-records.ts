/** Reads CSV files as a stream of records with their line numbers, within limits. */
import { createReadStream } from 'node:fs';
import { CsvError, type Info, parse } from 'csv-parse';
import { ConfigError } from '#shared/runtime/config.ts';

export type CsvRecord = { line: number; values: Readonly<Record<string, string>> };

/** The largest published file has about one million rows. */
const MAX_RECORDS = 5_000_000;
const MAX_RECORD_CHARS = 10_000;

/** Names of columns are trimmed. Throws ConfigError that names the file and line for text that is not CSV. */
export async function* csvRecords(file: string): AsyncGenerator<CsvRecord> {
  const parser = parse({
    columns: (names: string[]) => names.map((name) => name.trim()),
    bom: true,
    info: true,
    trim: true,
    skip_empty_lines: true,
    max_record_size: MAX_RECORD_CHARS,
  });
  const input = createReadStream(file);
  input.on('error', (error) => parser.destroy(error));
  input.pipe(parser);
  let records = 0;
  try {
    for await (const parsed of parser) {
      const { record, info } = parsed as { record: CsvRecord['values']; info: Info };
      records += 1;
      if (records > MAX_RECORDS) {
        throw new ConfigError(`${file}:${info.lines}: more than ${MAX_RECORDS} rows`);
      }
      yield { line: info.lines, values: record };
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw new ConfigError(`${file}:${String(error['lines'] ?? 1)}: ${error.message}`, {
      cause: error,
    });
  } finally {
    input.destroy();
  }
}
