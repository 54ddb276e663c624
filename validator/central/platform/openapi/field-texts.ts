/** Descriptions of members that many models share. */

export const CREATED_AT = 'Time of creation (UTC).';
export const UPDATED_AT = 'Time of the last change (UTC).';
export const PAGE = 'Number of the page, from 1.';
export const LIMIT = 'Maximum number of entries per page.';
export const TOTAL = 'Number of entries on all pages.';
export const HAS_NEXT = 'True if a later page has entries.';
export const SUCCESS = 'Always true. The body of an error does not have this member.';
