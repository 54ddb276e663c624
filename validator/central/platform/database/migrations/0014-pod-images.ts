/** The key of a pod's image, so that past launches can be searched without parsing their specs. */
import type { SqlDialect } from '../sql-dialects.ts';

export const podImages = ({ jsonText }: SqlDialect): string[] => [
  'alter table pods add column image_key text',
  // Unknown for a pod that was changed since it was rented.
  `update pods set image_key = ${jsonText('spec_json', ['image', 'reference'])}
    || coalesce('@' || ${jsonText('spec_json', ['image', 'digest'])}, '')
    where generation = 1`,
];
