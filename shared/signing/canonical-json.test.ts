import { describe, expect, it } from 'vitest';
import { canonicalJson, parseCanonicalJson, pythonJson } from './canonical-json.ts';

const WEIGHTS = {
  weights: [65_535, 120],
  uids: [3, 7],
  netuid: 51,
  version_key: 3101,
  wait_for_inclusion: false,
  wait_for_finalization: false,
  current_block: null,
  updated_at: '2026-11-20T23:50:00.123456Z',
};

describe('Python JSON', () => {
  it('equals a text that Python has written', () => {
    expect(pythonJson(WEIGHTS)).toBe(
      '{"current_block": null, "netuid": 51, "uids": [3, 7], "updated_at": "2026-11-20T23:50:00.123456Z", "version_key": 3101, "wait_for_finalization": false, "wait_for_inclusion": false, "weights": [65535, 120]}',
    );
    expect(pythonJson({ 'é😀': '\x7f' })).toBe('{"\\u00e9\\ud83d\\ude00": "\\u007f"}');
  });

  it('escapes quotes, backslashes and every UTF-16 unit outside 0x20..0x7e, and nothing else', () => {
    const short = new Map([...'"\\\b\f\n\r\t'].map((char, at) => [char, '"\\bfnrt'[at]]));
    for (let unit = 0; unit <= 0xffff; unit += 1) {
      const char = String.fromCharCode(unit);
      const long = `\\u${unit.toString(16).padStart(4, '0')}`;
      const plain = unit >= 0x20 && unit <= 0x7e ? char : long;
      const expected = short.has(char) ? `\\${short.get(char)}` : plain;
      if (pythonJson(char) !== `"${expected}"`) expect([unit, pythonJson(char)]).toEqual([unit]);
    }
    expect(pythonJson('"\\\b\f\n\r\t\x00\x1f /')).toBe('"\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f /"');
  });

  it('orders keys by code points instead of UTF-16 units', () => {
    expect(pythonJson({ '\u{1f600}': 1, '\uffee': 2, a: 3 })).toBe(
      '{"a": 3, "\\uffee": 2, "\\ud83d\\ude00": 1}',
    );
  });
});

describe('canonical JSON', () => {
  it('writes the same text for any order of members', () => {
    const text = '{"a":[1,{"b":null,"c":"é\\n"}],"z":true}';
    expect(canonicalJson({ z: true, a: [1, { c: 'é\n', b: null }] })).toBe(text);
    expect(parseCanonicalJson(text)).toEqual({ value: JSON.parse(text) });
  });

  it.each([
    '{"b":1,"a":2}',
    '{"a":1,"a":1}',
    '{"a": 1}',
    '[1.5]',
    '[1e2]',
    '[9007199254740993]',
    '[-0]',
    '"\\u0041"',
    '{',
    '[1]\n',
  ])('rejects %s', (text) => {
    expect(parseCanonicalJson(text)).toBeNull();
  });
});

it.each([
  ['a fraction', 0.5],
  ['an unsafe integer', 2 ** 53],
  ['no number', Number.NaN],
  ['undefined', { a: undefined }],
  ['a bigint', 1n],
])('rejects %s in both spellings', (_, value) => {
  expect(() => canonicalJson(value)).toThrow(TypeError);
  expect(() => pythonJson(value)).toThrow(TypeError);
});

it('rejects deep values instead of exhausting the stack', () => {
  const deep: unknown = JSON.parse(`${'['.repeat(10_000)}${']'.repeat(10_000)}`);
  expect(() => canonicalJson(deep)).toThrow(/nested/);
});

it('writes the same text for ordered and unordered lists', () => {
  const ordered = {
    a: 'é😀\ud800"\\\n',
    b: [1, -0, null, true, { c: [], d: {} }],
    '10': 0,
    '9': 1,
  };
  const shuffled = Object.fromEntries(Object.entries(ordered).reverse());
  const text = canonicalJson(ordered);
  expect(canonicalJson([ordered, shuffled])).toBe(`[${text},${text}]`);
  expect(canonicalJson([ordered, ordered])).toBe(`[${text},${text}]`);
  expect(canonicalJson([JSON.parse(text)])).toBe(`[${text}]`);
  for (const wrong of [undefined, 0.5, Number.NaN, 2 ** 53, () => 1, { toJSON: () => 1 }]) {
    expect(() => canonicalJson([wrong])).toThrow(TypeError);
  }
  expect(() => canonicalJson(new Array(2))).toThrow(TypeError);
});
