/** Selects the templates that a page shows. Pure. The API returns all templates of the account at once. */
import type { TemplateResponse } from '../api/api.gen.ts';
import type { Tone } from '../parts/tone.ts';

export const OWNERS = ['official', 'own', 'shared'] as const;
export type Owner = (typeof OWNERS)[number];

export function ownerOf({ user_id: userId }: TemplateResponse, accountId: string): Owner {
  if (userId === null) return 'official';
  return userId === accountId ? 'own' : 'shared';
}

/** Templates whose name, image, description or tags have all words of `q`. */
export function findTemplates(
  templates: readonly TemplateResponse[],
  { q, owner, accountId }: { q: string; owner: Owner; accountId: string },
): TemplateResponse[] {
  const words = q.toLowerCase().split(/\s+/);
  return templates.filter((template) => {
    const { name, docker_image: image, description, tags } = template;
    const text = [name, image, description, ...tags].join(' ').toLowerCase();
    return ownerOf(template, accountId) === owner && words.every((word) => text.includes(word));
  });
}

export const CHECK_TONES: Record<TemplateResponse['status'], Tone> = {
  CREATED: 'idle',
  UPDATED: 'idle',
  VERIFY_PENDING: 'busy',
  VERIFY_SUCCESS: 'good',
  VERIFY_FAILED: 'warn',
};

/** Name of the image with its tag or digest. */
export function imageOf(template: TemplateResponse): string {
  const { docker_image: image, docker_image_tag: tag, docker_image_digest: digest } = template;
  return `${image}${tag === '' ? '' : `:${tag}`}${digest === '' ? '' : `@${digest}`}`;
}
