/** Converts templates between requests, rows and responses, and checks their content. Pure. */

import { ImageDigest, ImageReference, OWN_SSHD, reservedVariable } from '#shared/api/agent/pod.ts';
import { volumesProblem } from '#shared/api/agent/volumes.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Template } from '../../platform/database/tables.ts';
import { splitShellWords } from './shell-words.ts';
import {
  type CreateTemplate,
  TEMPLATE_CATEGORIES,
  TEMPLATE_STATUSES,
  type TemplateResponse,
  type UpdateTemplate,
} from './template.schemas.ts';

/** Maximum number of words of a command that agents accept. */
const MAX_WORDS = 64;

/** Columns that the author of a template sets. */
export type TemplateContent = Omit<
  Template,
  'id' | 'account_id' | 'used_at' | 'deleted_at' | 'created_at' | 'updated_at'
>;

/** Throws `template_invalid` for a malformed image or command. */
export function templateContent(body: CreateTemplate): TemplateContent {
  const { docker_image, docker_image_tag, docker_image_digest } = body;
  const name = parseImageName(docker_image, docker_image_tag, docker_image_digest);
  if (name === null) {
    throw new ApiError('template_invalid', 'docker_image, its tag or digest is malformed', {
      hint: 'Use [host[:port]/]path with a tag such as 24.04 or a digest sha256:<64 hex>.',
    });
  }
  commandWords('entrypoint', body.entrypoint);
  commandWords('startup_commands', body.startup_commands);
  return {
    name: body.name,
    description: body.description,
    docker_image: name.image,
    docker_image_tag: name.tag,
    docker_image_digest: name.digest,
    docker_image_size: body.docker_image_size ?? null,
    docker_credential_id: body.docker_credential_id ?? null,
    category: body.category,
    // A well-formed image counts as verified; the first launch determines whether it can be pulled.
    status: 'VERIFY_SUCCESS',
    is_private: body.is_private ? 1 : 0,
    one_time_template: body.one_time_template ? 1 : 0,
    is_temporary: body.is_temporary ? 1 : 0,
    internal_ports_json: JSON.stringify([...new Set(body.internal_ports)]),
    environment_json: JSON.stringify(body.environment),
    volumes_json: JSON.stringify([...new Set(body.volumes)]),
    tags_json: JSON.stringify([...new Set(body.tags)]),
    entrypoint: body.entrypoint,
    startup_commands: body.startup_commands,
    readme: body.readme,
    container_start_immediately: body.container_start_immediately ? 1 : 0,
  };
}

/** Splits a command into words. Throws `template_invalid`. */
export function commandWords(field: 'entrypoint' | 'startup_commands', text: string): string[] {
  const split = splitShellWords(text);
  if ('problem' in split) {
    throw new ApiError('template_invalid', `${field} has ${split.problem}`, {
      hint: "No shell interprets the command. To run a shell, write: bash -c '…'.",
    });
  }
  if (split.words.length > MAX_WORDS) {
    throw new ApiError('template_invalid', `${field} has more than ${MAX_WORDS} words`);
  }
  return split.words;
}

/** Returns `row` with `changes` applied, in the form of a request body. */
export function changedTemplate(row: TemplateResponse, changes: UpdateTemplate): CreateTemplate {
  const present = Object.fromEntries(
    Object.entries(changes).filter(([, value]) => value !== undefined),
  ) as Partial<CreateTemplate>;
  return {
    ...row,
    docker_image_size: row.docker_image_size ?? undefined,
    docker_credential_id: row.docker_credential_id ?? undefined,
    ...present,
    ...changedImage(row, changes),
  };
}

/**
 * Returns the image after the changes. A new image does not inherit the tag of the former image. A digest that the
 * client sends unchanged does not apply to a new image.
 */
function changedImage(stored: TemplateResponse, changes: UpdateTemplate) {
  const { docker_image: image, docker_image_tag: tag, docker_image_digest: digest } = changes;
  const before = imageReference({ image: stored.docker_image, tag: stored.docker_image_tag });
  const newImage = image ?? stored.docker_image;
  const keepsImage = image === undefined || image === stored.docker_image;
  const newTag = tag ?? (keepsImage ? stored.docker_image_tag : '');
  const same = imageReference({ image: newImage, tag: newTag }) === before;
  const newDigest = digest ?? stored.docker_image_digest;
  const stale = !same && newDigest === stored.docker_image_digest;
  return {
    docker_image: newImage,
    docker_image_tag: newTag,
    docker_image_digest: stale ? '' : newDigest,
  };
}

export function templateResponse(template: Template): TemplateResponse {
  return {
    id: template.id,
    name: template.name,
    description: template.description,
    docker_image: template.docker_image,
    docker_image_tag: template.docker_image_tag,
    docker_image_digest: template.docker_image_digest,
    docker_image_size: template.docker_image_size,
    category: oneOf(TEMPLATE_CATEGORIES, template.category),
    status: oneOf(TEMPLATE_STATUSES, template.status),
    user_id: template.account_id,
    is_private: template.is_private === 1,
    internal_ports: JSON.parse(template.internal_ports_json),
    environment: JSON.parse(template.environment_json),
    entrypoint: template.entrypoint,
    startup_commands: template.startup_commands,
    volumes: JSON.parse(template.volumes_json),
    tags: JSON.parse(template.tags_json),
    readme: template.readme,
    one_time_template: template.one_time_template === 1,
    is_temporary: template.is_temporary === 1,
    container_start_immediately: template.container_start_immediately === 1,
    supports_docker: null,
    docker_credential_id: template.docker_credential_id,
    created_at: naiveUtc(template.created_at),
    updated_at: naiveUtc(template.updated_at),
  };
}

function oneOf<Value extends string>(values: readonly Value[], text: string): Value {
  const found = values.find((value) => value === text);
  if (found === undefined) throw new Error(`${text} is none of ${values.join(', ')}`);
  return found;
}

/** Checks the members of a request. Throws `template_invalid` for the first path or variable that no pod can have. */
export function checkTemplatePaths(body: {
  volumes?: readonly string[] | undefined;
  environment?: Readonly<Record<string, string>> | undefined;
}): void {
  const { volumes = [], environment = {} } = body;
  const reserved = reservedVariable(environment);
  if (reserved !== null) {
    throw new ApiError('template_invalid', `environment: ${reserved} is set by the marketplace`, {
      hint: `Names that begin with PODWRIGHT_ are reserved, except ${OWN_SSHD}.`,
    });
  }
  if (!['', '0', '1', undefined].includes(environment[OWN_SSHD])) {
    throw new ApiError('template_invalid', `environment: ${OWN_SSHD} is neither 0 nor 1`);
  }
  const problem = volumesProblem(volumes);
  if (problem !== null) {
    throw new ApiError('template_invalid', `volumes: ${problem}`, {
      hint: 'Name separate folders of the container, such as /workspace.',
    });
  }
}

/** `image` is `[host[:port]/]path`; the tag is empty only with a digest. */
export type ImageName = { image: string; tag: string; digest: string };

/**
 * Returns null for a malformed name. Clients split a name at the last colon, which may belong to a registry's port or
 * to a digest, so image and tag are joined again before parsing.
 */
export function parseImageName(image: string, tag: string, digest: string): ImageName | null {
  const joined = tag === '' ? image : `${image}:${tag}`;
  const [name = '', ownDigest, ...rest] = joined.split('@');
  if (rest.length > 0 || (ownDigest !== undefined && digest !== '' && ownDigest !== digest)) {
    return null;
  }
  const pinned = ownDigest ?? digest;
  if (pinned !== '' && !ImageDigest.safeParse(pinned).success) return null;
  // Names of registries never begin with a dot or a dash, but `../x` and `--x/y` would match.
  if (!/^[A-Za-z0-9]/.test(name) || !ImageReference.safeParse(name).success) return null;

  const colonAt = name.lastIndexOf(':');
  const hasTag = colonAt > name.lastIndexOf('/');
  return {
    image: hasTag ? name.slice(0, colonAt) : name,
    tag: hasTag ? name.slice(colonAt + 1) : pinned === '' ? 'latest' : '',
    digest: pinned,
  };
}

/** `image[:tag]`. */
export function imageReference({ image, tag }: Pick<ImageName, 'image' | 'tag'>): string {
  return tag === '' ? image : `${image}:${tag}`;
}
