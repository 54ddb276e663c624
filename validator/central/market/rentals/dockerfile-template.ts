/** Renting by a Dockerfile: what stands for the template of such a pod (contract 4.1). Pure. */
import { parseDockerfile } from '#shared/api/agent/dockerfile.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Template } from '../../platform/database/tables.ts';
import { CreateTemplate } from '../templates/template.schemas.ts';
import { templateContent } from '../templates/template.service.ts';

/** What pods without a stored template have for its id. */
export const NO_TEMPLATE_ID = '';

/** The defaults of every new template; its image is built from the text. Throws `bad_request`. */
export function dockerfileTemplate(
  text: string,
  made: { id: string; accountId: string; nowMs: number },
): Template {
  const parsed = parseDockerfile(text);
  if ('problem' in parsed) {
    throw new ApiError('bad_request', `dockerfile_content: ${parsed.problem}`, {
      hint: 'Change the Dockerfile as the message says.',
    });
  }
  const body = {
    name: 'Dockerfile',
    description: 'Built on the node.',
    docker_image: 'dockerfile',
  };
  return {
    ...templateContent(CreateTemplate.parse({ ...body, category: 'DOCKER' })),
    id: made.id,
    account_id: made.accountId,
    used_at: null,
    deleted_at: null,
    created_at: made.nowMs,
    updated_at: made.nowMs,
  };
}
