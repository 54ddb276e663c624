/** By what a pod's image is known, so that past launches are looked through without their specs. */
import type { SqlWords } from '../sql-dialects.ts';

export const podImages = ({ jsonText }: SqlWords): string[] => [
  'alter table pods add column image_key text',
  // Of a pod that was changed since, what it was rented with is not known.
  `update pods set image_key = ${jsonText('spec_json', ['image', 'reference'])}
    || coalesce('@' || ${jsonText('spec_json', ['image', 'digest'])}, '')
    where generation = 1`,
];
