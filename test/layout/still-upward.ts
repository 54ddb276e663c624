/** Imports that still point upward: each is to be turned round, then removed from this list. */
export const STILL_UPWARD: readonly string[] = [];
