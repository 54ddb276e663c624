/** Key of a pod's image, so that a search for past launches does not parse their specs. */
import type { SqlDialect } from '../sql-dialects.ts';

export const podImages = ({ jsonText }: SqlDialect): string[] => [
  'alter table pods add column image_key text',
  // The image of a pod that was changed since its rental is unknown.
  `update pods set image_key = ${jsonText('spec_json', ['image', 'reference'])}
    || coalesce('@' || ${jsonText('spec_json', ['image', 'digest'])}, '')
    where generation = 1`,
];
