/** Reads a file for the layout rules: its code, its comments and its imports. */
import { posix } from 'node:path';
import { splitSource } from './source.ts';

export type Import = {
  specifier: string;
  /** The imported file, relative to the repository's root; null for a package. */
  target: string | null;
  /** The imported package (`@scope/name`, `node:fs`); null for a file. */
  package: string | null;
  /** True if type stripping removes the import. */
  typeOnly: boolean;
  line: number;
};

export type SourceFile = {
  path: string;
  code: string;
  comments: string;
  imports: readonly Import[];
};

/** Patterns for code in which the content of strings is replaced with spaces. */
const IMPORT_FORMS = [
  /\b(?:import|export)\s+(?<clause>[\w$*{},\s]*?)\s*\bfrom\s*(['"])(?<specifier>\s*)\2/dg,
  /\bimport\s*(['"])(?<specifier>\s*)\1/dg,
  /\b(?:import|require)\s*\(\s*(['"`])(?<specifier>\s*)\1/dg,
];

const ONLY_TYPES = /^(?:type\b|\{\s*(?:type\s[^,{}]*,?\s*)+\}$)/;

export function readSource(path: string, text: string): SourceFile {
  const { code, comments } = splitSource(text);
  return { path, code, comments, imports: findImports(path, text, code) };
}

/** The one-based line of an offset. */
export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}

function findImports(path: string, text: string, code: string): Import[] {
  return IMPORT_FORMS.flatMap((form) =>
    [...code.matchAll(form)].map((match) => {
      const [start, end] = match.indices?.groups?.['specifier'] ?? [0, 0];
      const specifier = text.slice(start, end);
      return {
        specifier,
        ...resolve(path, specifier),
        typeOnly: ONLY_TYPES.test(match.groups?.['clause'] ?? ''),
        line: lineAt(text, start),
      };
    }),
  );
}

function resolve(from: string, specifier: string): Pick<Import, 'target' | 'package'> {
  if (specifier.startsWith('.')) {
    return { target: posix.join(posix.dirname(from), specifier), package: null };
  }
  if (specifier.startsWith('#')) return { target: specifier.slice(1), package: null };
  const [first = '', second = ''] = specifier.split('/');
  return { target: null, package: first.startsWith('@') ? `${first}/${second}` : first };
}
