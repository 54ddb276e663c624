/** Patterns for SQL's LIKE. */

/** Escapes the wildcards of a text; the comparison needs `escape '!'`. */
export const literally = (text: string) => text.replaceAll(/[!%_]/g, '!$&');
