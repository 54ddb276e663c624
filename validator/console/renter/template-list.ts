/** Owner, check and image of a template. Pure. */
import type { TemplateResponse } from '../api/api.gen.ts';
import type { Tone } from '../parts/tone.ts';

export const OWNERS = ['official', 'own', 'shared'] as const;
export type Owner = (typeof OWNERS)[number];

export function ownerOf({ user_id: userId }: TemplateResponse, accountId: string): Owner {
  if (userId === null) return 'official';
  return userId === accountId ? 'own' : 'shared';
}

export const CHECK_TONES: Record<TemplateResponse['status'], Tone> = {
  CREATED: 'idle',
  UPDATED: 'idle',
  VERIFY_PENDING: 'busy',
  VERIFY_SUCCESS: 'good',
  VERIFY_FAILED: 'warn',
};

/** Words for the check of a template's image. */
export const CHECK_NAMES: Record<TemplateResponse['status'], string> = {
  CREATED: 'not checked',
  UPDATED: 'not checked',
  VERIFY_PENDING: 'in progress',
  VERIFY_SUCCESS: 'found',
  VERIFY_FAILED: 'failed',
};

/** Name of the image with its tag or digest. */
export function imageOf(template: TemplateResponse): string {
  const { docker_image: image, docker_image_tag: tag, docker_image_digest: digest } = template;
  return `${image}${tag === '' ? '' : `:${tag}`}${digest === '' ? '' : `@${digest}`}`;
}
