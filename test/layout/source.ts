/**
 * Separates code from comments and literals in a TypeScript file, so that a rule about code ignores strings and a rule
 * about comments ignores code. A small lexer without a grammar.
 */

export type SourceText = {
  /** The text with comments and the content of literals replaced by spaces; every offset stays the same. */
  code: string;
  /** The text with everything except comments replaced with spaces. */
  comments: string;
};

type Kind = 'code' | 'comment' | 'literal';
type Piece = { kind: Kind; end: number };

const COMMENT = /\/\/[^\n]*|\/\*[\s\S]*?\*\//y;
const QUOTED = /'(?:\\[\s\S]|[^'\\\n])*'|"(?:\\[\s\S]|[^"\\\n])*"/y;
const REGEX = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*/y;
/**
 * A template literal from its backtick, or from the brace that ends a substitution, up to the next backtick or
 * substitution.
 */
const TEMPLATE = /[`}](?:\\[\s\S]|\$(?!\{)|[^`\\$])*(?:`|\$\{)/y;
/** Tokens that may precede a regular expression; after any other token a slash divides. */
const BEFORE_REGEX =
  /(?:^|[(,=:[!&|?{};+\-*%~^<>]|\b(?:return|typeof|case|of|in|await|throw|else))\s*$/;

export function splitSource(text: string): SourceText {
  let code = '';
  let comments = '';
  let at = 0;
  for (const { kind, end } of pieces(text)) {
    const piece = text.slice(at, end);
    const blank = piece.replace(/[^\n]/g, ' ');
    code += kind === 'code' ? piece : kind === 'comment' ? blank : hollow(piece);
    comments += kind === 'comment' ? piece : blank;
    at = end;
  }
  return { code, comments };
}

/** Replaces the content with spaces and retains the quotes, so that a string is still recognizable. */
function hollow(literal: string): string {
  const inside = literal.slice(1, -1).replace(/[^\n]/g, ' ');
  return literal.slice(0, 1) + inside + literal.slice(-1);
}

function* pieces(text: string): Generator<Piece> {
  /** Number of open braces in the substitution of each enclosing template. */
  const openBraces: number[] = [];
  let at = 0;
  let before = '';
  while (at < text.length) {
    const char = text.charAt(at);
    const inSubstitution = openBraces.at(-1);
    const piece = pieceAt(text, at, before, inSubstitution === 0);
    if (piece.kind === 'literal' && (char === '`' || char === '}')) {
      if (char === '}') openBraces.pop();
      if (text.charAt(piece.end - 1) === '{') openBraces.push(0);
    } else if (inSubstitution !== undefined && (char === '{' || char === '}')) {
      openBraces[openBraces.length - 1] = inSubstitution + (char === '{' ? 1 : -1);
    }
    if (piece.kind === 'code') before = (before + char).slice(-40);
    if (piece.kind === 'literal') before = text.charAt(piece.end - 1) === '{' ? '(' : ')';
    at = piece.end;
    yield piece;
  }
}

function pieceAt(text: string, at: number, before: string, substitutionMayEnd: boolean): Piece {
  const char = text.charAt(at);
  const match = (kind: Kind, pattern: RegExp): Piece | null => {
    pattern.lastIndex = at;
    return pattern.test(text) ? { kind, end: pattern.lastIndex } : null;
  };
  const special =
    (char === '/' && match('comment', COMMENT)) ||
    (char === '/' && BEFORE_REGEX.test(before) && match('literal', REGEX)) ||
    ((char === "'" || char === '"') && match('literal', QUOTED)) ||
    ((char === '`' || (char === '}' && substitutionMayEnd)) && match('literal', TEMPLATE));
  return special || { kind: 'code', end: at + 1 };
}
