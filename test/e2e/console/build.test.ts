/** The build of the console: its sizes, what it contains, and repeated builds. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildConsoleIn } from '../../fixtures/built-console.ts';

const FIRST_LOAD_BYTES = 150_000;
const LATER_PAGE_BYTES = 60_000;
/** Libraries that pages load when they show a chart or a terminal. */
const ON_DEMAND = /node_modules\/(?:uplot|@xterm)\//;

type Chunk = { file: string; imports?: string[]; css?: string[]; dynamicImports?: string[] };

let folder: string;
let build: string;
let manifest: Record<string, Chunk>;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-build-'));
  await buildConsoleIn(folder);
  build = join(folder, current());
  manifest = JSON.parse(readFileSync(join(build, 'manifest.json'), 'utf8'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const current = () => readFileSync(join(folder, 'current'), 'utf8').trim();

/** Files that a chunk needs: itself, its static imports and their styles. */
function filesOf(key: string, seen = new Set<string>()): Set<string> {
  const chunk = manifest[key];
  if (chunk === undefined || seen.has(chunk.file)) return seen;
  for (const file of [chunk.file, ...(chunk.css ?? [])]) seen.add(file);
  for (const imported of chunk.imports ?? []) filesOf(imported, seen);
  return seen;
}

const gzipBytes = (files: Iterable<string>) =>
  [...files].reduce((sum, file) => sum + statSync(join(build, `${file}.gz`)).size, 0);

it('loads at most 150 kB for the first page', () => {
  const bytes = gzipBytes([...filesOf('index.html'), 'index.html']);
  expect(bytes).toBeGreaterThan(10_000);
  expect(bytes).toBeLessThanOrEqual(FIRST_LOAD_BYTES);
});

it('loads at most 60 kB for each later page', () => {
  const first = filesOf('index.html');
  const later = new Set(
    Object.values(manifest).flatMap(({ dynamicImports = [] }) => dynamicImports),
  );
  const pages = [...later].filter((key) => !ON_DEMAND.test(key));
  // Two pages may be in one file.
  expect(pages.length).toBeGreaterThan(20);
  const tooLarge = pages
    .map((key) => ({ key, bytes: gzipBytes(filesOf(key).difference(first)) }))
    .filter(({ bytes }) => bytes > LATER_PAGE_BYTES);
  expect(tooLarge).toEqual([]);
});

it('has no inline script, no inline style and no address of another host', () => {
  const page = readFileSync(join(build, 'index.html'), 'utf8');
  expect(page).not.toMatch(/<script(?![^>]* src="\/assets\/)|<style| style=| on\w+=|https?:/);
});

it('a second build of the same sources changes nothing', async () => {
  const before = { name: current(), files: readdirSync(build, { recursive: true }) };
  const { mtimeMs } = statSync(join(build, 'index.html'));
  await buildConsoleIn(folder);
  expect({ name: current(), files: readdirSync(build, { recursive: true }) }).toEqual(before);
  expect(statSync(join(build, 'index.html')).mtimeMs).toBe(mtimeMs);
});

it('replaces an incomplete build, and removes drafts of builds that were killed', async () => {
  writeFileSync(join(folder, 'draft-killed'), '');
  rmSync(join(build, 'index.html'));
  await buildConsoleIn(folder);
  expect(readdirSync(folder).toSorted()).toEqual([current(), 'current'].toSorted());
  expect(readFileSync(join(folder, current(), 'index.html'), 'utf8')).toContain('/assets/');
});
