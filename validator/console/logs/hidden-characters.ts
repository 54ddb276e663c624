/** Characters that have no picture but change how other text is shown, such as its direction. Pure. */

/** Part of a text; `code` is the name of a character without a picture, such as `U+202E`. */
export type VisiblePart = { text: string; code: string | null };

/**
 * Soft hyphens, marks and overrides of the direction, zero-width spaces, separators, invisible operators and tags.
 * Joiners within words and emoji are not included.
 */
const HIDDEN =
  /[\u00AD\u061C\u180E\u200B\u200E\u200F\u2028-\u202E\u2060-\u206F\uFEFF\uFFF9-\uFFFB\u{E0000}-\u{E007F}]/u;
const ALL_HIDDEN = new RegExp(HIDDEN.source, 'gu');
/** Characters by which `U+202E` is longer than the character that it names. */
const CODE_CHARS = 5;

/** Splits a text so that characters without a picture are separate parts. Together the parts are the text. */
export function visibleParts(text: string): VisiblePart[] {
  if (!HIDDEN.test(text)) return [{ text, code: null }];
  const parts: VisiblePart[] = [];
  let from = 0;
  for (const { 0: found, index } of text.matchAll(ALL_HIDDEN)) {
    if (index > from) parts.push({ text: text.slice(from, index), code: null });
    parts.push({ text: found, code: codeOf(found) });
    from = index + found.length;
  }
  if (from < text.length) parts.push({ text: text.slice(from), code: null });
  return parts;
}

/** Characters that the view shows for a text. */
export function visibleLength(text: string): number {
  if (!HIDDEN.test(text)) return text.length;
  return text.length + CODE_CHARS * [...text.matchAll(ALL_HIDDEN)].length;
}

function codeOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}
