/** Words that comments and READMEs must not contain, each with its replacement. */
import { lineAt } from './imports.ts';

type Banned = { pattern: RegExp; instead: string };

const BANNED: readonly Banned[] = [
  {
    pattern: /\b(?:nobody|somebody|anybody|everybody|whoever|whomever)\b/i,
    instead: 'the role: caller, renter, provider, operator, another process',
  },
  { pattern: /\b(?:tells?|told|telling)\b/i, instead: 'notify, report, record, return' },
  { pattern: /\b(?:says?|said|saying)\b/i, instead: 'state, report, return, contain' },
  { pattern: /\b(?:asks|asked|asking)\b/i, instead: 'query, request, call' },
  { pattern: /\b(?:hears?|heard|hearing)\b/i, instead: 'receive' },
  { pattern: /\b(?:knows|knew)\b/i, instead: 'store, cache, list' },
  {
    pattern: /\b(?:looks?|looked|looking) (?:at|for|after|into|whether)\b/i,
    instead: 'read, check, observe',
  },
  { pattern: /\b(?:gives|gave|giving)\b(?! up)/i, instead: 'return, set, pass, send' },
  { pattern: /\b(?:news|word of)\b/i, instead: 'message, event, notification' },
  { pattern: /\blies\b/i, instead: 'is, is stored in' },
  { pattern: /\bstands? (?:in|for|there|at|on|by)\b/i, instead: 'is, means, is stored in' },
  {
    pattern: /\b(?:of ours|of (?:its|their|our|his|her) own|one['’]s own)\b/i,
    instead: 'our, its, separate, per-pod',
  },
  { pattern: /\bbut for\b/i, instead: 'except' },
  { pattern: /\bbe it\b/i, instead: 'either' },
  { pattern: /\bnone of them that\b/i, instead: 'none that' },
  {
    pattern: /(?<!\b[Tt]here )\b(?:is|are|was|were) no (?!longer\b|more\b)/,
    instead: 'is not, has no',
  },
];

/** A doc comment begins with a verb in the third person or with the noun that is declared. */
const HEADLESS = /^(?:What|Of|Whether|How|Where|Who|Whose|Whom|That) /;

/** Returns the banned words in a file's comments, as `path:line "found": instead`. */
export function bannedWordsIn(path: string, text: string): string[] {
  return commentsOf(text).flatMap(({ offset, words, isDoc }) => {
    const at = `${path}:${lineAt(text, offset)}`;
    const headless = isDoc ? HEADLESS.exec(words) : null;
    return [
      ...(headless === null ? [] : [`${at} "${headless[0]}…": begin with a verb or a noun`]),
      ...bannedIn(at, words),
    ];
  });
}

/** Returns the banned words in a README, line by line. Code blocks, code spans and quotes are not checked. */
export function bannedWordsInMarkdown(path: string, text: string): string[] {
  const prose = text
    .replace(/^```[\s\S]*?^```$/gm, (block) => block.replace(/[^\n]+/g, ''))
    .replace(/`[^`]*`|"[^"]*"/g, (quoted) => quoted.replace(/[^\n]+/g, '…'));
  return prose.split('\n').flatMap((line, index) => bannedIn(`${path}:${index + 1}`, line));
}

function bannedIn(at: string, words: string): string[] {
  return BANNED.flatMap(({ pattern, instead }) => {
    const found = pattern.exec(words);
    return found === null ? [] : [`${at} "${found[0]}": ${instead}`];
  });
}

/** Comments with their markers removed. Text within backticks or double quotes is quoted and not checked. */
function commentsOf(text: string): { offset: number; words: string; isDoc: boolean }[] {
  const found = text.matchAll(/\/\*[\s\S]*?\*\/|(?<=^|[\s;{}(,])\/\/[^\n]*/g);
  return [...found].map((match) => ({
    offset: match.index,
    isDoc: match[0].startsWith('/**'),
    words: match[0]
      .replace(/^\/\*+|\*\/$|^\/\/+/g, '')
      .replace(/\n\s*\*?/g, ' ')
      .replace(/`[^`]*`|"[^"]*"/g, '…')
      .trim(),
  }));
}
