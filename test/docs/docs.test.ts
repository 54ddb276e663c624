/** Tests of the READMEs: generated tables are current, links and named files exist, and no banned word is used. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bannedWordsInMarkdown } from '../layout/words.ts';
import { clientTypes } from './client-types.ts';
import {
  COVERAGE_FILE,
  defaultCoverage,
  GENERATED,
  readDocument,
  regenerate,
  tablesIn,
} from './generated.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Paths from the root of the repository in backticks. */
const NAMED_PATH = /`((?:agent|shared|validator|test|systemd)\/[\w./-]+)`/g;
/** Source files in backticks, from the root or from the folder of the README. */
const NAMED_SOURCE = /`([\w./-]+\.ts)`/g;
const READMES = execFileSync('git', ['ls-files', '*README.md'], { cwd: ROOT, encoding: 'utf8' })
  .trim()
  .split('\n');

describe.each(Object.entries(GENERATED))('%s', (path, tables) => {
  const document = readDocument(path);

  it('has its generated tables', () => {
    expect(tablesIn(document)).toEqual(tables);
  });

  it('is up to date (otherwise run `npm run docs`)', async () => {
    expect(await regenerate(document)).toBe(document);
  });
});

it('has the coverage of the default policy (otherwise run `npm run docs`)', () => {
  expect(defaultCoverage()).toBe(readDocument(COVERAGE_FILE));
});

it('has the console’s types of the present interface (otherwise run `npm run docs`)', async () => {
  for (const [path, text] of await clientTypes()) expect(readDocument(path), path).toBe(text);
});

describe.each(READMES)('%s', (path) => {
  const document = readDocument(path);

  it('has no broken link', () => {
    const links = [...proseOf(document).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
    expect(links.filter((link) => isBroken(path, link))).toEqual([]);
  });

  it('names only files that exist', () => {
    const named = [...proseOf(document).matchAll(NAMED_PATH)].map(([, file = '']) => file);
    expect(named.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
    const sources = [...proseOf(document).matchAll(NAMED_SOURCE)].map(([, file = '']) => file);
    const places = (file: string) => [join(ROOT, file), join(ROOT, dirname(path), file)];
    expect(sources.filter((file) => !places(file).some((place) => existsSync(place)))).toEqual([]);
  });

  it('has no banned words', () => {
    expect(bannedWordsInMarkdown(path, document)).toEqual([]);
  });
});

/** Returns the text without code blocks, in which `](` can be shell syntax. */
function proseOf(document: string): string {
  return document.replace(/^```[\s\S]*?^```$/gm, '');
}

function isBroken(path: string, link: string): boolean {
  if (/^https?:/.test(link)) return false;
  const [file = '', anchor] = link.split('#');
  const target = file === '' ? path : join(dirname(path), file);
  if (!existsSync(join(ROOT, target))) return true;
  return anchor !== undefined && !anchorsOf(readDocument(target)).includes(anchor);
}

/** Anchors of the headings, as GitHub derives them. */
function anchorsOf(document: string): string[] {
  return [...proseOf(document).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}
