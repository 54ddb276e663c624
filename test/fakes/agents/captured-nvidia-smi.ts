/** An nvidia-smi in this process that answers queries like a captured driver, with the rejections of that driver. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NvidiaSmi, SmiOutput } from '../../../agent/gpu/nvidia/nvidia-smi.ts';

const FOLDER = new URL('../../fixtures/nvidia-captures/', import.meta.url).pathname;

export type CapturedDriver = {
  /** Values of one card with their units, by field. */
  values: ReadonlyMap<string, string>;
  /** Units as the header prints them: `[MiB]`; empty for fields without a unit. */
  units: ReadonlyMap<string, string>;
  /** Output of `--help-query-gpu`; null if the driver cannot list its fields. */
  help: string | null;
  list: string;
  topology: string;
  xml: string;
};

/** Names of the captured files with this ending. */
export function captureNames(ending: '.txt' | '.xml'): string[] {
  return readdirSync(FOLDER).filter((name) => name.endsWith(ending));
}

export function captureText(name: string): string {
  return readFileSync(join(FOLDER, name), 'utf8');
}

/** Reads a capture in the form of nvidia_gpu_exporter. It has no XML document. */
export function capturedDriver(name: string): CapturedDriver {
  const text = captureText(name);
  const [query = '', ...lines] = sectionOf(text, '--query-gpu=').split('\n');
  const [header = '', row = ''] = lines.filter((line) => line !== '' && !line.startsWith('#'));
  const fields = query.replace(/ --format.*/, '').split(',');
  const cells = row.split(', ').map((cell) => cell.trim());
  const headings = header.split(', ');
  const units = fields.map((_, place) => /\[.*\]$/.exec(headings[place] ?? '')?.[0] ?? '');
  const help = sectionOf(text, '--help-query-gpu');
  return {
    values: new Map(fields.map((field, place) => [field, cells[place] ?? ''])),
    units: new Map(fields.map((field, place) => [field, units[place] ?? ''])),
    help: help === '' ? helpOf(fields) : help,
    list: sectionOf(text, '-L\n'),
    topology: sectionOf(text, 'topo -m'),
    xml: '',
  };
}

/** Returns the text behind `# $ nvidia-smi <command>` up to the next section; empty without one. */
function sectionOf(text: string, command: string): string {
  const [, section = ''] = text.split(`# $ nvidia-smi ${command}`);
  return section.split(/\n#+\n# [a-z]+ :: /)[0] ?? '';
}

/** A list of these fields in the form of `--help-query-gpu`. */
export function helpOf(fields: readonly string[]): string {
  return fields.map((field) => `"${field}"\nDescription of the field.\n`).join('\n');
}

/** `queries`: the fields of each query so far. */
export function createCapturedNvidiaSmi(driver: CapturedDriver): NvidiaSmi & {
  queries: readonly string[][];
} {
  const queries: string[][] = [];
  const answer = (stdout: string, exitCode = 0): SmiOutput => {
    const problem = exitCode === 0 ? null : `nvidia-smi exited with status ${exitCode}`;
    return { stdout, complete: true, problem, exitCode };
  };

  function query(fields: string[]): SmiOutput {
    queries.push(fields);
    const unknown = fields.find((field) => !driver.values.has(field));
    if (unknown !== undefined) {
      return answer(`Field "${unknown}" is not a valid field to query.\n\n`, 2);
    }
    const cells = fields.map((field) => {
      const unit = (driver.units.get(field) ?? '').slice(1, -1);
      const value = driver.values.get(field) ?? '';
      return unit !== '' && value.endsWith(` ${unit}`) ? value.slice(0, -unit.length - 1) : value;
    });
    return answer(`${cells.join(', ')}\n`);
  }

  return {
    queries,
    async run([first = '']) {
      if (first.startsWith('--query-gpu=')) {
        return query(first.slice('--query-gpu='.length).split(','));
      }
      if (first === '--help-query-gpu') {
        return driver.help === null ? answer('', 1) : answer(driver.help);
      }
      const texts: Record<string, string> = { '-L': driver.list, topo: driver.topology };
      return answer(first === '-q' ? driver.xml : (texts[first] ?? ''));
    },
  };
}
